#include "common/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/log/log_line.h"
#include "common/log/repeat_limit.h"

namespace levin {
namespace {

// The one thing of the process that everybody may speak to without being handed it.
class Logger final {
 public:
  Logger() : out_("levin", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    out_.set_pattern("%v");
  }

  Status Start(std::string_view level, std::string_view format, std::string component) {
    bool known = false;
    for (const LogLevel each :
         {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
      if (LogLevelName(each) != level) continue;
      level_ = each;
      known = true;
    }
    if (!known) {
      return InvalidArgument("log level '" + std::string(level) +
                             "' is none of debug, info, warning, error")
          .WithParam("log-level");
    }
    if (format != "text" && format != "json") {
      return InvalidArgument("log format '" + std::string(format) + "' is neither text nor json")
          .WithParam("log-format");
    }
    json_ = format == "json";
    component_ = std::move(component);
    return Status::Ok();
  }

  void CountWith(std::function<void(LogLevel)> count) { count_ = std::move(count); }

  void Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    if (level < level_) return;
    std::vector<LogField> all(fields);
    if (level == LogLevel::kWarning) {
      MutexLock lock(mutex_);
      const std::optional<int64_t> held_back = limit_.Admit(event, clock_.Now());
      if (!held_back) return;
      if (*held_back > 0) all.push_back({"held_back", *held_back});
    }
    if (count_) count_(level);
    const LogLine line = {clock_.UnixMs(), level, component_, event, all};
    const std::string text = json_ ? FormatJsonLine(line) : FormatTextLine(line);
    out_.log(spdlog::level::info, spdlog::string_view_t(text));
  }

 private:
  spdlog::logger out_;
  SystemClock clock_;
  LogLevel level_ = LogLevel::kInfo;
  bool json_ = false;
  std::string component_ = "levin";
  std::function<void(LogLevel)> count_;
  Mutex mutex_;
  RepeatLimit limit_ GUARDED_BY(mutex_);
};

// Never destroyed: threads may still log while the process leaves.
Logger& TheLogger() {
  static Logger* const logger = new Logger();
  return *logger;
}

}  // namespace

Status StartLog(std::string_view level, std::string_view format, std::string component) {
  return TheLogger().Start(level, format, std::move(component));
}

void CountLogWith(std::function<void(LogLevel)> count) { TheLogger().CountWith(std::move(count)); }

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  TheLogger().Write(level, event, fields);
}

}  // namespace levin
