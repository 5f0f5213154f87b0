#include "router/text/reply_parser.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

// "content:...", "reasoning:...", "call NAME", "args:..." one a line.
std::string Show(const std::vector<ReplyPart>& parts) {
  std::string shown;
  for (const ReplyPart& part : parts) {
    switch (part.kind) {
      case ReplyPart::Kind::kContent:
        shown += "content:" + part.text;
        break;
      case ReplyPart::Kind::kReasoning:
        shown += "reasoning:" + part.text;
        break;
      case ReplyPart::Kind::kToolStart:
        shown += "call " + part.name;
        break;
      case ReplyPart::Kind::kToolArgs:
        shown += "args:" + part.text;
        break;
    }
    shown += '\n';
  }
  return shown;
}

std::string Whole(const ReplyParserOptions& options, std::string_view text,
                  FinishReason end = FinishReason::kStop) {
  ReplyParser parser(options);
  std::string shown = Show(parser.Push(text));
  return shown += Show(parser.Flush(end));
}

ReplyParserOptions M1() {
  ReplyParserOptions options;
  options.reasoning = true;
  options.tools = ToolFamily::kM1;
  return options;
}

TEST(ReplyParser, ReasoningCanBeLeftOutAndStillCounts) {
  ReplyParserOptions options = M1();
  options.include_reasoning = false;
  ReplyParser parser(options);
  EXPECT_EQ(parser.reasoning_bytes(), 0u);
  EXPECT_EQ(Show(parser.Push("<think>\nab")), "");
  EXPECT_EQ(parser.reasoning_bytes(), 10u);
  EXPECT_EQ(Show(parser.Push("\n</think>\n\nhi")), "content:hi\n");
  EXPECT_EQ(parser.reasoning_bytes(), 19u);
  parser.Flush(FinishReason::kStop);
  EXPECT_EQ(parser.reasoning_bytes(), 19u);
}

TEST(ReplyParser, WithoutAnythingToFindTextGoesThroughAtOnce) {
  ReplyParser parser(ReplyParserOptions{});
  EXPECT_EQ(Show(parser.Push("<think>\n<tool_calls>{")), "content:<think>\n<tool_calls>{\n");
  EXPECT_EQ(Show(parser.Flush(FinishReason::kStop)), "");
  EXPECT_FALSE(parser.content_is_null());
}

TEST(ReplyParser, IdsAreDistinctLettersAndDigits) {
  ReplyParser parser(M1());
  const auto parts = parser.Push(
      "<tool_calls>{\"name\":\"a\",\"arguments\":{}}{\"name\":\"b\",\"arguments\":{}}</"
      "tool_calls>");
  std::vector<std::string> ids;
  for (const auto& part : parts) {
    if (part.kind == ReplyPart::Kind::kToolStart) ids.push_back(part.id);
  }
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  for (const auto& id : ids) {
    EXPECT_EQ(id.size(), 29u);
    EXPECT_EQ(id.substr(0, 5), "call_");
  }
}

TEST(ReplyParser, ArgumentsOfEveryKindComeOutAsTheirText) {
  const auto arguments = [](std::string_view value) {
    return Whole(
        M1(), "<tool_calls>{\"name\":\"f\",\"arguments\":" + std::string(value) + "}</tool_calls>");
  };
  EXPECT_EQ(arguments("5"), "call f\nargs:5\n");
  EXPECT_EQ(arguments("-1.5e3 "), "call f\nargs:-1.5e3\n");
  EXPECT_EQ(arguments("true"), "call f\nargs:true\n");
  EXPECT_EQ(arguments("null"), "call f\nargs:{}\n");
  EXPECT_EQ(arguments("\"\""), "call f\nargs:{}\n");
  EXPECT_EQ(arguments("\"{\\ud83d\\ude00\\ud800}\""),
            "call f\nargs:{\xF0\x9F\x98\x80\xEF\xBF\xBD}\n");
}

TEST(ReplyParser, AClosingTagInsideArgumentsIsNotAThinkTag) {
  const std::string text =
      "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a\n</think>\nb\"}}\n</tool_calls>";
  EXPECT_EQ(Whole(M1(), text), "call f\nargs:{\"s\": \"a\n</think>\nb\"}\n");
}

TEST(ReplyParser, TextAroundSeveralBlocksKeepsItsWords) {
  EXPECT_EQ(Whole(M1(),
                  "a \n<tool_calls>{\"name\":\"f\",\"arguments\":{}}</tool_calls> b "
                  "<tool_calls>no</tool_calls>"),
            "content:a\ncall f\nargs:{}\ncontent: \nb <tool_calls>no</tool_calls>\n");
}

TEST(ReplyParser, BrokenObjectsOfABlockWithACallAreContent) {
  EXPECT_EQ(Whole(M1(),
                  "<tool_calls>\n{\"name\": "
                  "1}\n{bad}\n{\"name\":\"f\",\"arguments\":{}}\n{\"name\"\n</tool_calls>"),
            "content:{\"name\": 1}\n{bad}\ncall f\nargs:{}\ncontent:\n{\"name\"\n");
}

TEST(ReplyParser, AFunctionCallTokenEndsWhatWasHeld) {
  ReplyParserOptions options;
  options.tools = ToolFamily::kText01;
  options.function_call = 7;
  ReplyParser parser(options);
  EXPECT_EQ(Show(parser.Push("Look ``")), "content:Look\n");
  const SpecialEvent events[] = {{7, 0}};
  EXPECT_EQ(Show(parser.Push("functions.f({\"a\":1})", events)),
            "content: ``\ncall f\nargs:{\"a\":1}\n");
  EXPECT_EQ(Show(parser.Push("\n\nDone.")), "content:Done.\n");
  EXPECT_EQ(Show(parser.Flush(FinishReason::kStop)), "");
  EXPECT_TRUE(parser.ends_in_tool_calls());
}

TEST(ReplyParser, LongRunsOfWhatMayBecomeAMarkerStayLinear) {
  // A mebibyte a byte at a time: quadratic work would take minutes.
  for (const std::string unit : {"\n", "<", " ", "`", "<think", "</tool_calls"}) {
    ReplyParser parser(M1());
    ReplyParserOptions text_01;
    text_01.tools = ToolFamily::kText01;
    ReplyParser other(text_01);
    std::string sent, got;
    for (int i = 0; i < 200000; ++i) {
      const char c = unit[i % unit.size()];
      sent += c;
      for (const auto& part : parser.Push({&c, 1})) got += part.text;
      other.Push({&c, 1});
    }
    for (const auto& part : parser.Flush(FinishReason::kStop)) got += part.text;
    EXPECT_EQ(got, sent) << unit;
  }
}

}  // namespace
}  // namespace levin
