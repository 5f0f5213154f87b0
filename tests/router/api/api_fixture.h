// The whole API on the demo model's tokenizer and an engine that follows a script.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/api.h"
#include "router/text/utf8.h"
#include "tests/support/demo_model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine_client.h"
#include "tests/support/recording_responder.h"

namespace levin::testing {

using boost::json::array;
using boost::json::object;
using boost::json::value;

inline std::string Str(const value& text) { return std::string(text.as_string()); }

// The data of each server-sent event.
inline std::vector<std::string> Events(const std::string& body) {
  std::vector<std::string> events;
  size_t at = 0;
  while (at < body.size()) {
    const size_t end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event is not closed";
    if (end == std::string::npos) break;
    const std::string event = body.substr(at, end - at);
    if (!event.starts_with(":")) {
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      EXPECT_EQ(event.find('\n'), std::string::npos) << "one line for each event";
      events.push_back(event.substr(6));
    }
    at = end + 2;
  }
  return events;
}

// The chunks of a good stream, without its [DONE].
inline std::vector<value> Chunks(const std::string& body) {
  std::vector<std::string> events = Events(body);
  std::vector<value> chunks;
  EXPECT_FALSE(events.empty());
  if (events.empty()) return chunks;
  EXPECT_EQ(events.back(), "[DONE]");
  events.pop_back();
  for (const std::string& event : events) chunks.push_back(boost::json::parse(event));
  return chunks;
}

class ApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = DemoModel().release(); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }

  ApiTest() { UseOptions({}); }

  void UseOptions(ApiOptions options) {
    api_ = std::make_unique<HttpApi>(generator_, engine_, clock_, std::move(options));
  }

  std::shared_ptr<ReplyRecord> Send(HttpRequest request) {
    auto record = std::make_shared<ReplyRecord>();
    api_->handler()(std::move(request), std::make_shared<RecordingResponder>(record));
    return record;
  }
  std::shared_ptr<ReplyRecord> Post(std::string path, std::string body, HttpHeaders headers = {}) {
    headers.emplace_back("content-type", "application/json");
    return Send({.method = "POST",
                 .path = std::move(path),
                 .query = {},
                 .headers = std::move(headers),
                 .body = std::move(body),
                 .peer = "test"});
  }
  std::shared_ptr<ReplyRecord> Get(std::string path, HttpHeaders headers = {},
                                   std::string method = "GET") {
    return Send({.method = std::move(method),
                 .path = std::move(path),
                 .query = {},
                 .headers = std::move(headers),
                 .body = {},
                 .peer = "test"});
  }
  // Runs the engine until nothing lives.
  std::shared_ptr<ReplyRecord> PostAndRun(std::string path, std::string body,
                                          HttpHeaders headers = {}) {
    auto record = Post(std::move(path), std::move(body), std::move(headers));
    engine_.RunToEnd();
    return record;
  }
  // {"messages":[{"role":"user","content":"hi"}] MORE}
  std::string ChatBody(const std::string& more = "") {
    return R"({"messages":[{"role":"user","content":"hi"}])" + (more.empty() ? "" : ", " + more) +
           "}";
  }
  std::shared_ptr<ReplyRecord> Chat(const std::string& more = "") {
    return PostAndRun("/v1/chat/completions", ChatBody(more));
  }
  std::shared_ptr<ReplyRecord> Complete(const std::string& more = R"("prompt":"hi")") {
    return PostAndRun("/v1/completions", "{" + more + "}");
  }

  FakeEngineClient::Script Text(std::string_view text, bool with_end = true) {
    std::vector<TokenId> ids = DemoIds(*model_, text);
    if (with_end) ids.push_back(model_->info().eos);
    return FakeEngineClient::Tokens(ids);
  }
  FakeEngineClient::Script BytesOf(std::string_view text, bool with_end = true) {
    std::vector<TokenId> ids = ByteIds(*model_, text);
    if (with_end) ids.push_back(model_->info().eos);
    return FakeEngineClient::Tokens(ids);
  }

  // Nothing, until it is cancelled.
  static FakeEngineClient::Script Endless() {
    FakeEngineClient::Script script;
    script.endless = true;
    return script;
  }

  static value Json(const std::shared_ptr<ReplyRecord>& record) {
    boost::system::error_code error;
    value parsed = boost::json::parse(record->body(), error);
    EXPECT_FALSE(error) << record->body();
    return parsed;
  }
  // "status type code param" of an error reply, which has exactly OpenAI's four keys.
  static std::string ErrorOf(const std::shared_ptr<ReplyRecord>& record) {
    const value body = Json(record);
    if (!body.is_object() || !body.as_object().contains("error")) {
      return std::to_string(record->status()) + " no error: " + record->body();
    }
    const object& error = body.as_object().at("error").as_object();
    EXPECT_EQ(error.size(), 4u);
    EXPECT_EQ(record->Header("content-type"), "application/json");
    EXPECT_FALSE(Str(error.at("message")).empty());
    const value& param = error.at("param");
    return std::to_string(record->status()) + ' ' + Str(error.at("type")) + ' ' +
           Str(error.at("code")) + ' ' + (param.is_null() ? "-" : Str(param));
  }
  static std::string MessageOf(const std::shared_ptr<ReplyRecord>& record) {
    return Str(Json(record).at("error").at("message"));
  }

  static inline ServedModel* model_ = nullptr;
  FakeClock clock_;
  FakeEngineClient engine_;
  Generator generator_{*model_, engine_, clock_};
  std::unique_ptr<HttpApi> api_;
};

}  // namespace levin::testing
