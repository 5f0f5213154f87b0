// What real clients send (golden/clients): each request, byte for byte, is answered or refused as
// its fields say, and an answer has every key without which that client fails or goes wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/router/api/api_fixture.h"
#include "tests/support/golden.h"

namespace levin::testing {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

bool AsksFor(const object& body, std::string_view key) {
  const value* found = body.if_contains(key);
  return found != nullptr && !found->is_null();
}

// The first field that waits for a later issue; "" when the request is to be answered.
std::string NotBuiltYet(const object& body) {
  if (AsksFor(body, "response_format") && Str(body.at("response_format").at("type")) != "text") {
    return "response_format";
  }
  if (AsksFor(body, "echo") && body.at("echo").as_bool() && AsksFor(body, "logprobs")) {
    return "echo";
  }
  if (AsksFor(body, "tool_choice")) {
    const value& choice = body.at("tool_choice");
    if (choice.is_object() || Str(choice) == "required") return "tool_choice";
  }
  if (AsksFor(body, "priority") && body.at("priority").as_int64() != 0) return "priority";
  if (AsksFor(body, "n") && body.at("n").as_int64() > 1) return "n";
  return {};
}

// Is "choices.*.delta.content" in the reply (in one of the chunks of a stream)?
bool HasPath(const value& json, std::string_view path) {
  if (path.empty()) return true;
  const size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  const std::string_view rest = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  if (json.is_array() && key != "*") {
    const size_t index = std::stoul(std::string(key));
    return index < json.as_array().size() && HasPath(json.as_array()[index], rest);
  }
  if (key == "*") {
    if (!json.is_array()) return false;
    for (const value& one : json.as_array()) {
      if (HasPath(one, rest)) return true;
    }
    return false;
  }
  if (!json.is_object()) return false;
  const value* found = json.as_object().if_contains(key);
  return found != nullptr && HasPath(*found, rest);
}

// The keys that the client needs, without those that only another answer than ours would have.
std::vector<std::string> NeededPaths(const object& file) {
  std::vector<std::string> paths;
  const value* must = file.if_contains("must_answer");
  if (must == nullptr || !must->is_object()) return paths;
  if (const value* fails = must->as_object().if_contains("fails_without");
      fails != nullptr && fails->is_object()) {
    for (const auto& pair : fails->as_object()) paths.emplace_back(pair.key());
  }
  if (const value* changes = must->as_object().if_contains("changes_without");
      changes != nullptr && changes->is_array()) {
    for (const value& path : changes->as_array()) paths.push_back(Str(path));
  }
  return paths;
}

class ClientsTest : public ApiTest {
 protected:
  // Ids of real tokenizers are in these requests: the vocabulary is M1's, only its size matters.
  ClientsTest() {
    served_ = DemoModel([](ModelInfo& info) {
      info.names = {"levin-test", "org/name"};
      info.vocab_size = 200064;
    });
    generator_m1_ = std::make_unique<Generator>(*served_, engine_, clock_);
    api_ = std::make_unique<HttpApi>(*generator_m1_, engine_, clock_, ApiOptions{});
    GroupInfo group;
    group.max_model_len = 1 << 20;
    engine_.set_group(group);
  }

  std::shared_ptr<ReplyRecord> Replay(const object& request) {
    HttpRequest http{.method = Str(request.at("method")),
                     .path = Str(request.at("path")),
                     .query = {},
                     .headers = {},
                     .body = {},
                     .peer = {}};
    for (const auto& pair : request.at("headers").as_object()) {
      if (!pair.value().is_string()) continue;
      const std::string text = Str(pair.value());
      if (text.find('<') == std::string::npos) http.headers.emplace_back(pair.key(), text);
    }
    if (const value* text = request.if_contains("body_text"); text && text->is_string()) {
      http.body = Str(*text);
    }
    auto script = Text("Hello there, this is an answer of some length.");
    for (SampledToken& token : script.tokens) {
      token.logprob = -1;
      token.top = {{token.token, -1.0f}};
    }
    engine_.AnswerAllWith(script);
    auto record = Send(std::move(http));
    engine_.RunToEnd();
    return record;
  }

  static void ExpectKeys(const std::string& name, const ReplyRecord& reply, bool stream,
                         const std::vector<std::string>& paths) {
    std::vector<value> parts;
    if (stream) {
      parts = Chunks(reply.body());
    } else {
      parts.push_back(boost::json::parse(reply.body()));
    }
    for (const std::string& path : paths) {
      // The text that we answer with has neither calls nor a think block.
      if (path.find("tool_calls") != std::string::npos) continue;
      if (path.find("reasoning") != std::string::npos) continue;
      const bool found = std::any_of(parts.begin(), parts.end(),
                                     [&](const value& part) { return HasPath(part, path); });
      EXPECT_TRUE(found) << name << " needs " << path;
    }
  }

  std::unique_ptr<ServedModel> served_;
  std::unique_ptr<Generator> generator_m1_;
};

TEST_F(ClientsTest, EveryRecordedRequestIsAnsweredOrRefusedAsItsFieldsSay) {
  int answered = 0, refused = 0, elsewhere = 0;
  for (const auto& dir : GoldenDirs("clients")) {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().extension() != ".json") continue;
      const std::string name = entry.path().stem().string();
      const value file = boost::json::parse(ReadAll(entry.path()));
      const object& request = file.at("request").as_object();
      const std::string path = Str(request.at("path"));
      const auto reply = Replay(request);

      if (path == "/v1/embeddings" || path == "/v1/moderations" || path == "/v1/responses") {
        EXPECT_EQ(ErrorOf(reply), "404 invalid_request_error unknown_url -") << name;
        ++elsewhere;
        continue;
      }
      const value* body = request.if_contains("body");
      const object fields = body != nullptr && body->is_object() ? body->as_object() : object{};
      const std::string unbuilt = NotBuiltYet(fields);
      if (!unbuilt.empty()) {
        EXPECT_EQ(ErrorOf(reply), "400 invalid_request_error unsupported_parameter " + unbuilt)
            << name;
        ++refused;
        continue;
      }
      if (AsksFor(fields, "temperature") &&
          fields.at("temperature").to_number<double>() > 2) {  // a test of the client's own errors
        EXPECT_EQ(ErrorOf(reply), "400 invalid_request_error invalid_value temperature") << name;
        ++answered;
        continue;
      }
      if (AsksFor(fields, "model") && !served_->info().Serves(Str(fields.at("model")))) {
        EXPECT_EQ(ErrorOf(reply), "404 invalid_request_error model_not_found model") << name;
        ++answered;
        continue;
      }
      EXPECT_EQ(reply->status(), 200) << name << ": " << reply->body();
      if (reply->status() != 200) continue;
      ++answered;
      if (Str(request.at("method")) == "POST") {
        const bool stream = AsksFor(fields, "stream") && fields.at("stream").as_bool();
        ExpectKeys(name, *reply, stream, NeededPaths(file.as_object()));
      }
    }
  }
  std::cout << "clients: " << answered << " answered, " << refused
            << " refused for fields of later issues, " << elsewhere
            << " endpoints that are not here\n";
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace levin::testing
