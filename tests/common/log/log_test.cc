#include "common/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/log/log_line.h"
#include "common/log/repeat_limit.h"

namespace levin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LogLine Line(std::span<const LogField> fields) {
  return {.unix_ms = 1'769'860'800'007,
          .level = LogLevel::kWarning,
          .component = "router",
          .event = "request_done",
          .fields = fields};
}

TEST(LogLineTest, IsOneJsonObject) {
  const std::string name = "levin demo";
  const std::vector<LogField> fields = {{"status", 200}, {"ms", 12.5},    {"model", name},
                                        {"ok", true},    {"bytes", 7ull}, {"ratio", 0.0 / 0.0},
                                        {"none", ""}};
  EXPECT_EQ(FormatJsonLine(Line(fields)),
            R"({"ts":"2026-01-31T12:00:00.007Z","level":"warning","component":"router",)"
            R"("event":"request_done","status":200,"ms":12.5,"model":"levin demo","ok":true,)"
            R"("bytes":7,"ratio":null,"none":""})");
}

TEST(LogLineTest, IsTextForPeople) {
  const std::vector<LogField> fields = {
      {"status", 200}, {"path", "/v1/models"}, {"why", "two words"}, {"none", ""}};
  EXPECT_EQ(FormatTextLine(Line(fields)),
            "2026-01-31T12:00:00.007Z warning router request_done status=200 path=/v1/models "
            "why=\"two words\" none=\"\"");
}

TEST(LogLineTest, NoValueCanForgeALineOrBreakTheJson) {
  const std::string hostile("a\nb\r\"c\\\x01\x7f", 9);
  const std::vector<LogField> fields = {{"value", hostile}};
  EXPECT_THAT(FormatJsonLine(Line(fields)), HasSubstr(R"("value":"a\nb\u000d\"c\\\u0001\u007f"})"));
  EXPECT_THAT(FormatTextLine(Line(fields)), Not(HasSubstr("\n")));
  EXPECT_THAT(FormatTextLine(Line(fields)), HasSubstr(R"(value="a\nb\u000d)"));
}

TEST(LogLineTest, KeepsValidUtf8AndReplacesWhatIsNot) {
  const std::string valid = "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80 \xE4\xB8\xAD";
  const std::string replaced = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {valid, valid},
      {"\xFFz", replaced + "z"},
      {"a\xC3", "a" + replaced},                                        // cut short
      {"\xC0\xAF", replaced + replaced},                                // overlong
      {"\xED\xA0\x80", replaced + replaced + replaced},                 // a surrogate
      {"\xF4\x90\x80\x80", replaced + replaced + replaced + replaced},  // beyond U+10FFFF
  };
  for (const auto& [in, out] : cases) {
    const std::vector<LogField> fields = {{"v", in}};
    EXPECT_THAT(FormatJsonLine(Line(fields)), HasSubstr("\"v\":\"" + out + "\"}"));
  }
}

TEST(RepeatLimitTest, HoldsBackWhatRepeatsAndSaysHowMuch) {
  RepeatLimit limit;
  const TimePoint start{};
  for (int i = 0; i < RepeatLimit::kPerWindowMax; ++i) EXPECT_EQ(limit.Admit("slow", start), 0);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(limit.Admit("slow", start + std::chrono::seconds(9)), std::nullopt);
  EXPECT_EQ(limit.Admit("other", start), 0);
  EXPECT_EQ(limit.Admit("slow", start + std::chrono::seconds(10)), 5);
  EXPECT_EQ(limit.Admit("slow", start + std::chrono::seconds(10)), 0);
}

TEST(LogTest, RefusesAnUnknownLevelOrFormat) {
  EXPECT_THAT(StartLog("loud", "text", "test").message(), HasSubstr("'loud'"));
  EXPECT_THAT(StartLog("info", "xml", "test").message(), HasSubstr("'xml'"));
}

TEST(LogTest, WritesFromTheLevelOnToStderrAndCountsWhatItWrote) {
  std::vector<LogLevel> counted;
  CountLogWith([&counted](LogLevel level) { counted.push_back(level); });
  ASSERT_TRUE(StartLog("info", "json", "test").ok());
  ::testing::internal::CaptureStderr();
  Log(LogLevel::kDebug, "hidden");
  Log(LogLevel::kInfo, "shown", {{"n", 1}, {"percent", "100%s {}"}});
  Log(LogLevel::kError, "bad");
  const std::string text = ::testing::internal::GetCapturedStderr();
  CountLogWith(nullptr);
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_THAT(text, HasSubstr(R"("level":"info","component":"test","event":"shown","n":1,)"
                              R"("percent":"100%s {}"})"
                              "\n"));
  EXPECT_THAT(text, HasSubstr("\"event\":\"bad\"}\n"));
  EXPECT_EQ(counted, (std::vector<LogLevel>{LogLevel::kInfo, LogLevel::kError}));
}

TEST(LogTest, LinesOfManyThreadsStayWhole) {
  ASSERT_TRUE(StartLog("info", "text", "test").ok());
  ::testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 100; ++n) Log(LogLevel::kInfo, "line", {{"value", "0123456789"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream in(::testing::internal::GetCapturedStderr());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_TRUE(line.ends_with(" info test line value=0123456789")) << line;
  }
  EXPECT_EQ(lines, 400);
}

}  // namespace
}  // namespace levin
