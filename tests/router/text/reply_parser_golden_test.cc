#include <iostream>

#include "router/text/chat_template.h"
#include "router/text/reply_parser.h"
#include "router/text/utf8.h"
#include "tests/router/text/json_lines.h"

namespace levin {
namespace {

using namespace levin::testing;

struct Call {
  std::string name, arguments;
  bool operator==(const Call&) const = default;
};

// A reply joined from its stream; its output can only grow.
struct Joined {
  std::string reasoning, content;
  std::vector<Call> calls;

  void Add(const std::vector<ReplyPart>& parts) {
    for (const ReplyPart& part : parts) {
      switch (part.kind) {
        case ReplyPart::Kind::kContent:
          content += part.text;
          break;
        case ReplyPart::Kind::kReasoning:
          reasoning += part.text;
          break;
        case ReplyPart::Kind::kToolStart:
          EXPECT_EQ(part.index, static_cast<int32_t>(calls.size()));
          EXPECT_EQ(part.id.size(), 29u);
          calls.push_back({part.name, ""});
          break;
        case ReplyPart::Kind::kToolArgs:
          ASSERT_LT(part.index, static_cast<int32_t>(calls.size()));
          calls[part.index].arguments += part.text;
          break;
      }
      EXPECT_TRUE(IsValidUtf8(part.text)) << part.text;
    }
  }
  size_t arguments() const {
    size_t bytes = 0;
    for (const Call& call : calls) bytes += call.arguments.size();
    return bytes;
  }
};

struct Scene {
  std::string name, output;
  ReplyParserOptions options;
  FinishReason end = FinishReason::kStop;
  std::vector<SpecialEvent> events;
};

std::string Member(const boost::json::value& line, std::string_view key, std::string fallback) {
  const auto* value = line.as_object().if_contains({key.data(), key.size()});
  return value ? Text(*value) : fallback;
}

Scene ReadScene(const boost::json::value& line) {
  Scene scene;
  scene.name = Text(line.at("name"));
  scene.output = Text(line.at("output"));
  scene.options.reasoning = Text(line.at("reasoning_parser")) == "minimax_m1";
  const std::string tools = Text(line.at("tool_parser"));
  if (!line.at("tools").as_array().empty() && Member(line, "tool_choice", "auto") != "none") {
    if (tools == "minimax") scene.options.tools = ToolFamily::kM1;
    if (tools == "minimax_text01") scene.options.tools = ToolFamily::kText01;
  }
  if (const auto* parallel = line.as_object().if_contains("parallel_tool_calls")) {
    scene.options.parallel_tool_calls = parallel->as_bool();
  }
  const Segment prompt[] = {{Member(line, "prompt_ends_with", ""), false}};
  scene.options.start = ThinkStartOf(prompt);
  scene.options.function_call = 200022;
  scene.options.id_seed = 1;
  scene.end = Text(line.at("end")) == "length" ? FinishReason::kLength : FinishReason::kStop;
  if (const auto* events = line.as_object().if_contains("events")) {
    for (const auto& event : events->as_array()) {
      scene.events.push_back({static_cast<TokenId>(event.at("id").as_int64()),
                              static_cast<size_t>(event.at("at").as_int64())});
    }
  }
  return scene;
}

// Feeds a scene in pieces of bytes, as the stage before would: unfinished characters wait there.
class Feeder final {
 public:
  explicit Feeder(const Scene& scene) : scene_(scene), parser_(scene.options) {}

  void FeedTo(size_t end) {
    std::string text;
    std::vector<SpecialEvent> specials;
    while (fed_ <= end) {
      while (next_ < scene_.events.size() && scene_.events[next_].at <= fed_ &&
             scene_.events[next_].at < end + 1) {
        specials.push_back({scene_.events[next_++].id, text.size()});
      }
      if (fed_ == end) break;
      characters_.Push(scene_.output.substr(fed_++, 1), text);
    }
    joined.Add(parser_.Push(text, specials));
  }
  void Finish() { joined.Add(parser_.Flush(scene_.end)); }

  const ReplyParser& parser() const { return parser_; }
  Joined joined;

 private:
  const Scene& scene_;
  ReplyParser parser_;
  Utf8Assembler characters_;
  size_t fed_ = 0, next_ = 0;
};

void ExpectReply(const Feeder& feeder, const Scene& scene, const boost::json::value& expected,
                 const std::string& split) {
  SCOPED_TRACE(scene.name + ", split " + split);
  const auto& reasoning = expected.at("reasoning");
  EXPECT_EQ(feeder.joined.reasoning, reasoning.is_null() ? "" : Text(reasoning));
  const auto& content = expected.at("content");
  EXPECT_EQ(feeder.joined.content, content.is_null() ? "" : Text(content));
  EXPECT_EQ(feeder.parser().content_is_null(), content.is_null());
  std::vector<Call> calls;
  for (const auto& call : expected.at("tool_calls").as_array()) {
    calls.push_back({Text(call.at("name")), Text(call.at("arguments"))});
  }
  EXPECT_TRUE(feeder.joined.calls == calls)
      << ::testing::PrintToString(feeder.joined.calls.size()) << " calls"
      << (feeder.joined.calls.empty()
              ? ""
              : ", first " + feeder.joined.calls[0].name + feeder.joined.calls[0].arguments);
  const std::string finish = scene.end == FinishReason::kLength     ? "length"
                             : feeder.parser().ends_in_tool_calls() ? "tool_calls"
                                                                    : "stop";
  EXPECT_EQ(finish, Text(expected.at("finish_reason")));
}

void RunSplit(const Scene& scene, const boost::json::value& expected,
              const std::vector<size_t>& ends, const std::string& split) {
  Feeder feeder(scene);
  for (const size_t end : ends) feeder.FeedTo(end);
  feeder.FeedTo(scene.output.size());
  feeder.Finish();
  ExpectReply(feeder, scene, expected, split);
}

TEST(ReplyParserGolden, EverySplitOfEveryOutputGivesTheSameReply) {
  size_t cases = 0, splits = 0;
  for (const auto& dir : GoldenDirs(".")) {
    if (!std::filesystem::exists(dir / "parsers.jsonl")) continue;
    for (const auto& line : ReadJsonLines(dir / "parsers.jsonl")) {
      const Scene scene = ReadScene(line);
      const auto& expected = line.at("expected");
      const size_t size = scene.output.size();
      RunSplit(scene, expected, {}, "none");
      for (const size_t piece : {1, 2, 3, 7, 64}) {
        std::vector<size_t> ends;
        for (size_t end = piece; end < size; end += piece) ends.push_back(end);
        RunSplit(scene, expected, ends, "in pieces of " + std::to_string(piece));
      }
      for (size_t at = 1; at < size; ++at)
        RunSplit(scene, expected, {at}, "at " + std::to_string(at));
      splits += 6 + (size > 0 ? size - 1 : 0);
      ++cases;
      ASSERT_FALSE(HasFailure()) << scene.name;
    }
  }
  std::cout << cases << " outputs, " << splits << " splits\n";
  EXPECT_GT(cases, 0u);
}

TEST(ReplyParserGolden, NothingIsHeldThatCannotBecomeAMarker) {
  size_t points = 0;
  for (const auto& dir : GoldenDirs(".")) {
    if (!std::filesystem::exists(dir / "parsers.jsonl")) continue;
    for (const auto& line : ReadJsonLines(dir / "parsers.jsonl")) {
      const auto* progress = line.as_object().if_contains("progress");
      if (!progress) continue;
      const Scene scene = ReadScene(line);
      Feeder feeder(scene);
      for (const auto& point : progress->as_array()) {
        const auto bytes = static_cast<size_t>(point.at("after_bytes").as_int64());
        for (size_t end = 1; end <= bytes; ++end) feeder.FeedTo(end);
        SCOPED_TRACE(scene.name + " after " + std::to_string(bytes));
        EXPECT_GE(feeder.joined.reasoning.size(),
                  static_cast<size_t>(point.at("reasoning").as_int64()));
        EXPECT_GE(feeder.joined.content.size(),
                  static_cast<size_t>(point.at("content").as_int64()));
        EXPECT_GE(feeder.joined.arguments(), static_cast<size_t>(point.at("arguments").as_int64()));
        ++points;
      }
    }
  }
  std::cout << points << " points of progress\n";
  EXPECT_GT(points, 0u);
}

}  // namespace
}  // namespace levin
