#include "router/rpc/inference_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace levin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(InferenceCodecTest, LeavesUnsetWhatTheClientDidNotSay) {
  v1::GenerateRequest request;
  request.set_text("x");
  const auto read = ReadGenerate(request);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->inference.temperature);
  EXPECT_FALSE(read->inference.top_k);
  EXPECT_FALSE(read->inference.max_tokens);
  EXPECT_FALSE(read->inference.logprobs);
  EXPECT_FALSE(read->inference.allowed_token_ids);
  EXPECT_TRUE(read->inference.skip_special_tokens);
  EXPECT_FALSE(read->form.whole);
}

TEST(InferenceCodecTest, ZeroIsNotUnset) {
  v1::GenerateRequest request;
  request.set_text("x");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_seed(0);
  request.mutable_stopping()->set_max_tokens(0);
  request.mutable_output()->set_logprobs(0);
  request.mutable_output()->set_skip_special_tokens(false);
  const auto read = ReadGenerate(request);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->inference.temperature, 0);
  EXPECT_EQ(read->inference.seed, 0);
  EXPECT_EQ(read->inference.max_tokens, 0);
  EXPECT_EQ(read->inference.max_tokens_least, 0);
  EXPECT_EQ(read->inference.logprobs, 0);
  EXPECT_FALSE(read->inference.skip_special_tokens);
}

TEST(InferenceCodecTest, ReadsEveryField) {
  v1::GenerateRequest request;
  request.set_text("x");
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_top_p(0.5f);
  sampling.set_top_k(-1);
  sampling.set_min_p(0.25f);
  sampling.set_frequency_penalty(-1);
  sampling.set_presence_penalty(1);
  sampling.set_repetition_penalty(1.5f);
  sampling.set_n(2);
  (*sampling.mutable_logit_bias())[9] = -5;
  (*sampling.mutable_logit_bias())[3] = 5;
  sampling.add_allowed_token_ids(7);
  sampling.add_bad_words("bad");
  sampling.set_min_tokens(4);
  v1::StoppingCriteria& stopping = *request.mutable_stopping();
  stopping.add_stop("end");
  stopping.add_stop_token_ids(11);
  stopping.set_ignore_eos(true);
  stopping.set_include_stop(true);
  request.mutable_output()->set_truncate_prompt_tokens(8);
  request.mutable_output()->set_mode(v1::OUTPUT_MODE_WHOLE);
  const auto read = ReadGenerate(request);
  ASSERT_TRUE(read);
  const InferenceRequest& inference = read->inference;
  EXPECT_EQ(inference.top_p, 0.5);
  EXPECT_EQ(inference.top_k, -1);
  EXPECT_EQ(inference.min_p, 0.25);
  EXPECT_EQ(inference.frequency_penalty, -1);
  EXPECT_EQ(inference.presence_penalty, 1);
  EXPECT_EQ(inference.repetition_penalty, 1.5);
  EXPECT_EQ(inference.n, 2);
  EXPECT_THAT(inference.logit_bias, ElementsAre(Pair(3, 5), Pair(9, -5)));
  EXPECT_THAT(*inference.allowed_token_ids, ElementsAre(7));
  EXPECT_THAT(inference.bad_words, ElementsAre("bad"));
  EXPECT_EQ(inference.min_tokens, 4);
  EXPECT_THAT(inference.stop, ElementsAre("end"));
  EXPECT_THAT(inference.stop_token_ids, ElementsAre(11));
  EXPECT_TRUE(inference.ignore_eos);
  EXPECT_TRUE(inference.include_stop);
  EXPECT_EQ(inference.truncate_prompt_tokens, 8);
  EXPECT_TRUE(read->form.whole);
}

TEST(InferenceCodecTest, ChatBecomesTheBodyOfAChatRequest) {
  v1::ChatRequest request;
  v1::ChatMessage* user = request.add_messages();
  user->set_role("user");
  user->add_parts()->set_text("a");
  user->add_parts()->set_text("b");
  v1::ChatMessage* assistant = request.add_messages();
  assistant->set_role("assistant");
  assistant->set_reasoning("hm");
  v1::ToolCall* call = assistant->add_tool_calls();
  call->set_id("call_1");
  call->set_name("f");
  call->set_arguments_json("{\"x\":1}");
  v1::ChatMessage* tool = request.add_messages();
  tool->set_role("tool");
  tool->set_tool_call_id("call_1");
  tool->add_parts()->set_text("2");
  request.set_add_generation_prompt(false);
  const auto json = ChatJson(request);
  ASSERT_TRUE(json);
  EXPECT_EQ(*json,
            R"({"messages":[)"
            R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
            R"({"role":"assistant","tool_calls":[{"id":"call_1","type":"function",)"
            R"("function":{"name":"f","arguments":"{\"x\":1}"}}],"reasoning_content":"hm"},)"
            R"({"role":"tool","content":[{"type":"text","text":"2"}],"tool_call_id":"call_1"}],)"
            R"("add_generation_prompt":false})");
}

TEST(InferenceCodecTest, AToolsRawParametersWinAndKeepTheirOrder) {
  v1::ChatRequest request;
  request.add_messages()->set_role("user");
  v1::Tool* tool = request.add_tools();
  tool->set_name("f");
  tool->set_description("d");
  (*tool->mutable_parameters()->mutable_fields())["b"].set_number_value(5);
  (*tool->mutable_parameters()->mutable_fields())["a"].set_number_value(0.5);
  EXPECT_THAT(*ChatJson(request), ::testing::HasSubstr(R"("parameters":{"a":5E-1,"b":5})"));
  tool->set_parameters_json(R"({"z":1,"a":2})");
  EXPECT_THAT(*ChatJson(request), ::testing::HasSubstr(R"("parameters":{"z":1,"a":2})"));
  tool->set_parameters_json("[1]");
  EXPECT_EQ(ChatJson(request).error().param(), "tools[0].parameters_json");
  tool->set_parameters_json("{");
  EXPECT_FALSE(ChatJson(request));
}

TEST(InferenceCodecTest, ToolsAreParsedUnlessTheChoiceIsNone) {
  v1::ChatRequest request;
  request.add_messages()->set_role("user");
  EXPECT_FALSE(ReadChat(request)->inference.reply.parse_tools);
  request.add_tools()->set_name("f");
  EXPECT_TRUE(ReadChat(request)->inference.reply.parse_tools);
  request.mutable_tool_choice()->set_mode(v1::TOOL_CHOICE_MODE_NONE);
  EXPECT_FALSE(ReadChat(request)->inference.reply.parse_tools);
  request.mutable_tool_choice()->set_mode(v1::TOOL_CHOICE_MODE_REQUIRED);
  EXPECT_EQ(ReadChat(request).error().reason(), "UNSUPPORTED_PARAMETER");
  request.mutable_tools(0)->set_name("no spaces here");
  EXPECT_EQ(ReadChat(request).error().param(), "tools[0].name");
}

TEST(InferenceCodecTest, NamesFieldsByTheirPath) {
  EXPECT_EQ(FieldPath("temperature"), "sampling.temperature");
  EXPECT_EQ(FieldPath("logit_bias.17"), "sampling.logit_bias.17");
  EXPECT_EQ(FieldPath("bad_words[2]"), "sampling.bad_words[2]");
  EXPECT_EQ(FieldPath("max_tokens"), "stopping.max_tokens");
  EXPECT_EQ(FieldPath("logprobs"), "output.logprobs");
  EXPECT_EQ(FieldPath("messages[0].role"), "messages[0].role");
  EXPECT_EQ(FieldPath(""), "");
}

}  // namespace
}  // namespace levin
