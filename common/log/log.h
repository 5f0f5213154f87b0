// Events of this process on stderr: one line each, as JSON or as text for people. An event has a
// short fixed name and facts as key = value. Never prompts, outputs, keys or salts. Any thread.
//
//   Log(LogLevel::kInfo, "request_done", {{"status", 200}, {"total_ms", 12.5}, {"model", name}});
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/status.h"

namespace levin {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// A fact. Text is referred to, not copied: it must live until Log returns.
class LogValue final {
 public:
  LogValue(std::string_view text) : value_(text) {}  // NOLINT(google-explicit-constructor)
  LogValue(const char* text) : value_(std::string_view(text)) {}                    // NOLINT
  LogValue(const std::string& text) : value_(std::string_view(text)) {}             // NOLINT
  LogValue(bool value) : value_(value) {}                                           // NOLINT
  LogValue(std::integral auto value) : value_(static_cast<int64_t>(value)) {}       // NOLINT
  LogValue(std::floating_point auto value) : value_(static_cast<double>(value)) {}  // NOLINT

  using Variant = std::variant<std::string_view, bool, int64_t, double>;
  const Variant& get() const { return value_; }

 private:
  Variant value_;
};

struct LogField {
  std::string_view key;
  LogValue value;
};

// Level: debug, info, warning, error. Format: text, json. Component: router, worker, serve …
// Once, before the first thread; without it events go out as text from info on.
Status StartLog(std::string_view level, std::string_view format, std::string component);

// Called for each event that is written, e.g. to count it. Once, before the first thread.
void CountLogWith(std::function<void(LogLevel)> count);

// Below the level: costs a comparison. A warning that repeats more than 20 times in 10 seconds is
// held back; the next one that is written says how many were (`held_back`).
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace levin
