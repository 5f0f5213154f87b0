// The text of one log line. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/log/log.h"

namespace levin {

struct LogLine {
  int64_t unix_ms = 0;
  LogLevel level = LogLevel::kInfo;
  std::string_view component;
  std::string_view event;
  std::span<const LogField> fields;
};

std::string_view LogLevelName(LogLevel level);

// {"ts":"2026-01-31T12:00:00.000Z","level":"info","component":"router","event":"start",…}
std::string FormatJsonLine(const LogLine& line);

// 2026-01-31T12:00:00.000Z info  router start key=value other="two words"
std::string FormatTextLine(const LogLine& line);

}  // namespace levin
