#include "router/inference/reply_builder.h"

#include <gtest/gtest.h>

#include "tests/support/demo_model.h"

namespace levin {
namespace {

// A reply that was joined from its events.
struct Joined {
  std::string content, reasoning, arguments;
  std::vector<std::string> calls;
  std::vector<TokenId> tokens;
  std::optional<ChoiceFinishedEvent> finish;
  int first_tokens = 0;
};

void Join(const std::vector<ReplyEvent>& events, Joined& out) {
  const auto add = [&](const std::vector<SampledToken>& tokens) {
    for (const SampledToken& token : tokens) out.tokens.push_back(token.token);
  };
  for (const ReplyEvent& event : events) {
    EXPECT_FALSE(out.finish) << "nothing may follow the finish";
    if (std::holds_alternative<FirstTokenEvent>(event)) ++out.first_tokens;
    if (const auto* delta = std::get_if<DeltaEvent>(&event)) {
      EXPECT_FALSE(delta->text.empty());
      (delta->kind == TextKind::kContent ? out.content : out.reasoning) += delta->text;
      add(delta->tokens);
    } else if (const auto* start = std::get_if<ToolStartEvent>(&event)) {
      EXPECT_EQ(start->index, static_cast<int32_t>(out.calls.size()));
      out.calls.push_back(start->name);
      add(start->tokens);
    } else if (const auto* args = std::get_if<ToolArgsEvent>(&event)) {
      out.arguments += args->fragment;
      add(args->tokens);
    } else if (const auto* finish = std::get_if<ChoiceFinishedEvent>(&event)) {
      add(finish->tokens);
      out.finish = *finish;
    }
  }
}

class ReplyBuilderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = testing::DemoModel().release(); }
  static void TearDownTestSuite() { delete model_; }

  ReplyBuilderTest() {
    request_.eos = model_->info().eos;
    request_.generation.sampling.stop_ids = {model_->info().eos};
    request_.generation.max_new_tokens = 1000;
  }

  // `batch` tokens come at once.
  Joined Run(const std::vector<TokenId>& ids, size_t batch = 1) {
    ReplyBuilder builder(request_, model_->tokenizer());
    Joined joined;
    for (size_t at = 0; at < ids.size(); at += batch) {
      std::vector<SampledToken> tokens;
      for (size_t i = at; i < std::min(at + batch, ids.size()); ++i) {
        tokens.emplace_back().token = ids[i];
      }
      std::vector<ReplyEvent> events;
      builder.Push(tokens, events);
      Join(events, joined);
    }
    std::vector<ReplyEvent> rest;
    builder.Finish(ReplyFinish::kLength, rest);
    Join(rest, joined);
    completion_tokens_ = builder.completion_tokens();
    reasoning_tokens_ = builder.reasoning_tokens();
    ended_by_text_ = builder.ended_by_text();
    return joined;
  }
  std::vector<TokenId> Bytes(std::string_view text, bool with_end = false) {
    std::vector<TokenId> ids = testing::ByteIds(*model_, text);
    EXPECT_EQ(ids.size(), text.size());
    if (with_end) ids.push_back(model_->info().eos);
    return ids;
  }

  static inline const ServedModel* model_ = nullptr;
  PreparedRequest request_;
  int64_t completion_tokens_ = 0, reasoning_tokens_ = 0;
  bool ended_by_text_ = false;
};

TEST_F(ReplyBuilderTest, TheEndTokenEndsIsHiddenAndCounts) {
  std::vector<TokenId> ids = Bytes("ab", true);
  ids.push_back(ids[0]);  // behind the end: neither shown nor counted
  const Joined joined = Run(ids, 10);
  EXPECT_EQ(joined.content, "ab");
  EXPECT_EQ(joined.finish->reason, ReplyFinish::kStop);
  EXPECT_FALSE(joined.finish->stop_token);
  EXPECT_EQ(completion_tokens_, 3);
  EXPECT_EQ(joined.tokens.size(), 3u);
  EXPECT_EQ(joined.first_tokens, 1);
  EXPECT_FALSE(ended_by_text_);
}

TEST_F(ReplyBuilderTest, TheEndTokenFirstIsAnEmptyReply) {
  const Joined joined = Run({model_->info().eos});
  EXPECT_EQ(joined.content, "");
  EXPECT_EQ(joined.finish->reason, ReplyFinish::kStop);
  EXPECT_EQ(completion_tokens_, 1);
}

TEST_F(ReplyBuilderTest, AStopIdIsNamedAndItsTextHiddenUnlessAsked) {
  const std::vector<TokenId> ids = Bytes("abc");
  request_.generation.sampling.stop_ids.push_back(ids[1]);
  Joined joined = Run(ids);
  EXPECT_EQ(joined.content, "a");
  EXPECT_EQ(joined.finish->stop_token, ids[1]);
  request_.include_stop = true;
  joined = Run(ids);
  EXPECT_EQ(joined.content, "ab");
}

TEST_F(ReplyBuilderTest, TheEndTokensTextIsShownOnlyIfBothFlagsAskForIt) {
  request_.include_stop = true;
  EXPECT_EQ(Run(Bytes("a", true)).content, "a");
  request_.skip_special_tokens = false;
  EXPECT_EQ(Run(Bytes("a", true)).content, "a<end_of_sentence>");
}

TEST_F(ReplyBuilderTest, AStopStringIsFoundOverTokensForEverySplit) {
  request_.stop = {"ver ban"};
  const std::vector<TokenId> ids = Bytes("A silver banner hung");
  for (size_t batch = 1; batch <= ids.size(); ++batch) {
    const Joined joined = Run(ids, batch);
    EXPECT_EQ(joined.content, "A sil") << batch;
    EXPECT_EQ(joined.finish->reason, ReplyFinish::kStop);
    EXPECT_EQ(joined.finish->stop_string, "ver ban");
    EXPECT_EQ(completion_tokens_, 12) << "the tokens of the stop string count, later ones do not";
    EXPECT_EQ(joined.tokens.size(), 12u);
    EXPECT_TRUE(ended_by_text_);
  }
  request_.include_stop = true;
  EXPECT_EQ(Run(ids).content, "A silver ban");
}

TEST_F(ReplyBuilderTest, BeforeMinTokensNoStopStringEnds) {
  request_.stop = {"b"};
  request_.generation.sampling.min_tokens = 3;
  EXPECT_EQ(Run(Bytes("abcbd")).content, "abc");
}

TEST_F(ReplyBuilderTest, HeldTextComesOutAtTheEnd) {
  request_.stop = {"bcd"};
  EXPECT_EQ(Run(Bytes("abc", true)).content, "abc");
}

TEST_F(ReplyBuilderTest, LengthEndsWithTheTokenThatReachesIt) {
  request_.generation.max_new_tokens = 2;
  const Joined joined = Run(Bytes("abc"), 3);
  EXPECT_EQ(joined.content, "ab");
  EXPECT_EQ(joined.finish->reason, ReplyFinish::kLength);
}

TEST_F(ReplyBuilderTest, CharactersAreWholeWhateverTheCut) {
  const std::string text = "a😀世界👩‍👩‍👧é";
  const std::vector<TokenId> ids = Bytes(text);
  EXPECT_EQ(Run(ids).content, text);
  for (int32_t length = 1; length <= static_cast<int32_t>(ids.size()); ++length) {
    request_.generation.max_new_tokens = length;
    const std::string content = Run(ids).content;
    EXPECT_EQ(text.substr(0, content.size()), content);
    EXPECT_GT(content.size() + 4, static_cast<size_t>(length));
    EXPECT_EQ(completion_tokens_, length) << "tokens of the dropped character count";
    EXPECT_EQ(content.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST_F(ReplyBuilderTest, ReasoningIsItsOwnFieldForEverySplit) {
  request_.parser.emplace().reasoning = true;
  const std::vector<TokenId> ids = Bytes("<think>\nab\n</think>\n\ncd", true);
  for (size_t batch = 1; batch <= ids.size(); ++batch) {
    const Joined joined = Run(ids, batch);
    EXPECT_EQ(joined.reasoning, "ab");
    EXPECT_EQ(joined.content, "cd");
    EXPECT_EQ(reasoning_tokens_, 19);  // up to the end of the closing tag
    EXPECT_EQ(joined.tokens.size(), ids.size());
    EXPECT_FALSE(joined.finish->content_is_null);
  }
}

TEST_F(ReplyBuilderTest, ALengthInsideThinkingIsAllReasoning) {
  request_.parser.emplace().reasoning = true;
  const std::vector<TokenId> ids = Bytes("<think>\nabc");
  request_.generation.max_new_tokens = static_cast<int32_t>(ids.size());
  const Joined joined = Run(ids);
  EXPECT_EQ(joined.reasoning, "abc");
  EXPECT_TRUE(joined.finish->content_is_null);
  EXPECT_EQ(joined.finish->reason, ReplyFinish::kLength);
  EXPECT_EQ(reasoning_tokens_, completion_tokens_);
}

TEST_F(ReplyBuilderTest, CallsAreFoundForEverySplit) {
  request_.parser.emplace().tools = ToolFamily::kM1;
  const std::vector<TokenId> ids =
      Bytes("<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}😀\"}}\n</tool_calls>", true);
  for (size_t batch = 1; batch <= ids.size(); ++batch) {
    const Joined joined = Run(ids, batch);
    EXPECT_EQ(joined.calls, (std::vector<std::string>{"f"}));
    EXPECT_EQ(joined.arguments, "{\"a\": \"}😀\"}");
    EXPECT_EQ(joined.content, "");
    EXPECT_EQ(joined.finish->reason, ReplyFinish::kToolCalls);
    EXPECT_TRUE(joined.finish->content_is_null);
    EXPECT_EQ(joined.tokens.size(), ids.size());
  }
}

TEST_F(ReplyBuilderTest, ACallCutByLengthEndsInLength) {
  request_.parser.emplace().tools = ToolFamily::kM1;
  const std::vector<TokenId> ids =
      Bytes("<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1");
  request_.generation.max_new_tokens = static_cast<int32_t>(ids.size());
  const Joined joined = Run(ids);
  EXPECT_EQ(joined.calls.size(), 1u);
  EXPECT_EQ(joined.finish->reason, ReplyFinish::kLength);
}

}  // namespace
}  // namespace levin
