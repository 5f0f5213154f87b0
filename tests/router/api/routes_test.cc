// Which path does what, and for whom (api.md 2, 3, 7).
#include <gtest/gtest.h>

#include "tests/router/api/api_fixture.h"

namespace levin::testing {
namespace {

using RoutesTest = ApiTest;

std::vector<int64_t> Ints(const value& list) {
  std::vector<int64_t> out;
  for (const value& one : list.as_array()) out.push_back(one.as_int64());
  return out;
}

TEST_F(RoutesTest, ModelsAreListedByEveryNameAndFoundByEachSpelling) {
  const value list = Json(Get("/v1/models"));
  EXPECT_EQ(Str(list.at("object")), "list");
  ASSERT_EQ(list.at("data").as_array().size(), 2u);
  const object& first = list.at("data").as_array()[0].as_object();
  EXPECT_EQ(Str(first.at("id")), "levin-demo");
  EXPECT_EQ(Str(first.at("object")), "model");
  EXPECT_EQ(first.at("created").as_int64(), 1750000000);
  EXPECT_EQ(first.at("max_model_len").as_int64(), 4096);
  EXPECT_TRUE(first.at("permission").as_array().empty());
  EXPECT_TRUE(first.at("parent").is_null());
  EXPECT_FALSE(first.contains("name"));
  for (const char* path : {"/v1/models/org/levin%20demo", "/v1/models/org%2Flevin%20demo",
                           "/v1/models/org%2flevin%20demo/"}) {
    EXPECT_EQ(Str(Json(Get(path)).at("id")), "org/levin demo") << path;
  }
  EXPECT_EQ(ErrorOf(Get("/v1/models/nobody")), "404 invalid_request_error model_not_found model");
}

TEST_F(RoutesTest, UnknownPathsAndMethodsAreJsonErrors) {
  EXPECT_EQ(ErrorOf(Get("/nothing")), "404 invalid_request_error unknown_url -");
  EXPECT_EQ(ErrorOf(Post("/v1/embeddings", "{}")), "404 invalid_request_error unknown_url -");
  const auto reply = Get("/v1/chat/completions");
  EXPECT_EQ(ErrorOf(reply), "405 invalid_request_error method_not_allowed -");
  EXPECT_EQ(reply->Header("allow"), "POST");
  EXPECT_EQ(Get("/health", {}, "DELETE")->Header("allow"), "GET, HEAD");
  EXPECT_EQ(Get("/health", {}, "HEA")->status(), 405);
}

TEST_F(RoutesTest, ATrailingSlashIsAccepted) {
  engine_.AnswerAllWith(Text("x"));
  EXPECT_EQ(PostAndRun("/v1/completions/", R"({"prompt":"x"})")->status(), 200);
  EXPECT_EQ(Str(Json(Get("/v1/models/")).at("object")), "list");
  EXPECT_EQ(ErrorOf(Get("/v1/models//")), "404 invalid_request_error unknown_url -");
  EXPECT_EQ(Get("/health/")->status(), 200);
}

TEST_F(RoutesTest, HealthFollowsTheGroupAndTheDrain) {
  for (const char* path : {"/health", "/readyz", "/ping"}) EXPECT_EQ(Get(path)->status(), 200);
  EXPECT_EQ(Get("/health", {}, "HEAD")->body(), "");
  engine_.set_group(std::nullopt);
  for (const char* path : {"/health", "/readyz"}) {
    EXPECT_EQ(ErrorOf(Get(path)), "503 server_error service_unavailable -");
  }
  EXPECT_EQ(Get("/livez")->status(), 200);
  engine_.set_group(GroupInfo{.group_id = "g", .max_model_len = 64});
  EXPECT_EQ(Get("/readyz")->status(), 200);
  api_->Drain();
  EXPECT_EQ(Get("/readyz")->status(), 503);
  EXPECT_EQ(ErrorOf(Chat()), "503 server_error service_unavailable -");
  EXPECT_EQ(Get("/livez")->status(), 200);
}

TEST_F(RoutesTest, VersionAndMetricsAreTold) {
  EXPECT_FALSE(Str(Json(Get("/version")).at("version")).empty());
  UseOptions({.metrics_text = [] { return std::string("a 1\n"); }});
  EXPECT_EQ(Get("/metrics")->body(), "a 1\n");
  EXPECT_TRUE(Get("/metrics")->Header("content-type").starts_with("text/plain"));
  EXPECT_EQ(Get("/metrics", {}, "HEAD")->status(), 200);
}

TEST_F(RoutesTest, AKeyGuardsWhatRunsTheModelOrReadsPrompts) {
  UseOptions({.api_keys = {"secret"}});
  engine_.AnswerAllWith(Text("x"));
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize",
                           "/v1/tokenize", "/v1/detokenize"}) {
    const auto reply = Post(path, "{}");
    EXPECT_EQ(ErrorOf(reply), "401 invalid_request_error invalid_api_key -") << path;
    EXPECT_EQ(reply->Header("www-authenticate"), "Bearer");
  }
  for (const char* path : {"/v1/models", "/v1/models/x", "/tokenizer_info", "/metrics"}) {
    EXPECT_EQ(Get(path)->status(), 401) << path;
    EXPECT_EQ(Get(path, {{"authorization", "Bearer "}})->status(), 401) << path;
    EXPECT_EQ(Get(path, {{"authorization", "Bearer wrong"}})->status(), 401) << path;
  }
  for (const char* path : {"/health", "/livez", "/readyz", "/ping", "/version"}) {
    EXPECT_EQ(Get(path)->status(), 200) << path;
  }
  EXPECT_EQ(Get("/v1/models", {{"authorization", "bearer secret"}})->status(), 200);
}

TEST_F(RoutesTest, BrowsersMayAskWithoutAKey) {
  UseOptions({.api_keys = {"secret"}});
  const auto reply = Get("/v1/chat/completions", {}, "OPTIONS");
  EXPECT_EQ(reply->status(), 204);
  EXPECT_EQ(reply->Header("access-control-allow-origin"), "*");
  EXPECT_NE(reply->Header("access-control-allow-headers").find("authorization"), std::string::npos);
  EXPECT_EQ(Get("/health")->Header("access-control-allow-origin"), "*");
}

TEST_F(RoutesTest, TokenizeGivesTheIdsThatWouldRun) {
  const value text = Json(Post("/tokenize", R"({"prompt":"hi <end_of_sentence>"})"));
  EXPECT_EQ(text.at("count").as_int64(), static_cast<int64_t>(text.at("tokens").as_array().size()));
  EXPECT_EQ(Ints(text.at("tokens")).back(), model_->info().eos);
  EXPECT_EQ(text.at("max_model_len").as_int64(), 4096);
  EXPECT_TRUE(text.at("token_strs").is_null());

  Chat();
  const value chat = Json(Post("/v1/tokenize", ChatBody(R"("return_token_strs":true)")));
  const std::vector<TokenId> prompt = engine_.submitted()[0].prompt;
  EXPECT_EQ(Ints(chat.at("tokens")), std::vector<int64_t>(prompt.begin(), prompt.end()));
  EXPECT_EQ(Str(chat.at("token_strs").as_array()[0]), "<begin_of_document>");
  EXPECT_EQ(ErrorOf(Post("/tokenize", "{}")),
            "400 invalid_request_error missing_required_parameter prompt");
  EXPECT_EQ(ErrorOf(Post("/tokenize", R"({"prompt":"x","model":"nobody"})")),
            "404 invalid_request_error model_not_found model");
}

TEST_F(RoutesTest, DetokenizeGivesBackEveryText) {
  const std::string text = "A 😀 <end_of_sentence> world";
  std::string ids;
  for (TokenId id : DemoIds(*model_, text)) {
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  }
  EXPECT_EQ(Str(Json(Post("/detokenize", R"({"tokens":[)" + ids + "]}")).at("prompt")), text);
  EXPECT_EQ(ErrorOf(Post("/detokenize", R"({"tokens":[1,1536]})")),
            "400 invalid_request_error invalid_value tokens[1]");
  EXPECT_EQ(ErrorOf(Post("/detokenize", R"({"tokens":["a"]})")),
            "400 invalid_request_error invalid_type tokens[0]");
  EXPECT_EQ(ErrorOf(Post("/detokenize", "{}")),
            "400 invalid_request_error missing_required_parameter tokens");
}

TEST_F(RoutesTest, TokenizerInfoHasWhatLmEvalLooksFor) {
  const value info = Json(Get("/tokenizer_info"));
  EXPECT_EQ(Str(info.at("eos_token")), "<end_of_sentence>");
  EXPECT_TRUE(info.at("tokenizer_class").is_string());
  EXPECT_TRUE(info.as_object().contains("chat_template"));
}

}  // namespace
}  // namespace levin::testing
