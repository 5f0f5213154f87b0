// Bodies that real clients send, broken at random: every one gets an answer that is JSON, and the
// server goes on (C07 to C10, C16, C17).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/router/api/api_fixture.h"
#include "tests/support/golden.h"

namespace levin::testing {
namespace {

constexpr int kRounds = 4000;

std::vector<std::string> RecordedBodies(std::string_view path) {
  std::vector<std::string> bodies;
  for (const auto& dir : GoldenDirs("clients")) {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (entry.path().extension() != ".json") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      const value file = boost::json::parse(text.str());
      const object& request = file.at("request").as_object();
      const value* body = request.if_contains("body_text");
      if (Str(request.at("path")) == path && body != nullptr && body->is_string()) {
        bodies.push_back(Str(*body));
      }
    }
  }
  std::sort(bodies.begin(), bodies.end());  // the same order on every file system
  return bodies;
}

class MutationTest : public ApiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Mutated(std::string body) {
    // Pieces that are at home in JSON break it in more ways than random bytes do.
    static const char* const kPieces[] = {"null",  "-1",   "1e400", "\"\"", "[]",          "{}",
                                          "true",  "0",    "[[",    "\xff", "\\ud800",     ":",
                                          "\"n\"", "1e18", "]",     "}",    "99999999999", "0.5"};
    const int changes = 1 + static_cast<int>(random_() % 3);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random_() % (body.size() + 1);
      const size_t length = random_() % 12;
      switch (random_() % 4) {
        case 0:
          body.erase(at, length);
          break;
        case 1:
          body.insert(at, kPieces[random_() % std::size(kPieces)]);
          break;
        case 2:
          body.replace(at, length, kPieces[random_() % std::size(kPieces)]);
          break;
        default:
          if (at < body.size()) body[at] = static_cast<char>(random_());
      }
    }
    return body;
  }

  std::mt19937_64 random_{20261130};
};

TEST_P(MutationTest, BrokenBodiesAreAnsweredInJson) {
  const std::string path = GetParam();
  const std::vector<std::string> bodies = RecordedBodies(path);
  ASSERT_FALSE(bodies.empty());
  engine_.AnswerAllWith(Text("Hello"));
  int answered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string body = Mutated(bodies[random_() % bodies.size()]);
    // The served model's name, so that more than the name is looked at.
    if (const size_t at = body.find("levin-test"); at != std::string::npos) {
      body.replace(at, 10, "levin-demo");
    }
    const auto reply = PostAndRun(path, body);
    ASSERT_NE(reply->end(), ReplyRecord::End::kNone) << "round " << round << ": " << body;
    ASSERT_TRUE(IsValidUtf8(reply->body())) << "round " << round;
    if (reply->status() == 200) {
      ++answered;
      continue;
    }
    ASSERT_TRUE(reply->status() == 400 || reply->status() == 404) << "round " << round << body;
    ErrorOf(reply);  // has the four keys
  }
  EXPECT_GT(answered, kRounds / 50);
  EXPECT_LT(answered, kRounds);
  EXPECT_EQ(engine_.live(), 0);
}

INSTANTIATE_TEST_SUITE_P(Endpoints, MutationTest,
                         ::testing::Values("/v1/chat/completions", "/v1/completions"));

}  // namespace
}  // namespace levin::testing
