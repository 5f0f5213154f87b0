#include "common/http/http_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace levin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpTextTest, SplitsATargetAndKeepsItsEncoding) {
  const auto split = [](const char* target) { return SplitTarget(target); };
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(split("/a%2Fb?c=d?e"), (Pair{"/a%2Fb", "c=d?e"}));
  EXPECT_EQ(split("/"), (Pair{"/", ""}));
  EXPECT_EQ(split("/a?"), (Pair{"/a", ""}));
  EXPECT_EQ(split("*"), (Pair{"*", ""}));
  EXPECT_EQ(split("http://h:80/a?b"), (Pair{"/a", "b"}));
  EXPECT_EQ(split("http://h"), (Pair{"/", ""}));
  EXPECT_EQ(split("http://h?b"), (Pair{"/", "b"}));
  EXPECT_EQ(split("/http://h/"), (Pair{"/http://h/", ""}));
}

TEST(HttpTextTest, WritesChunkSizesInHex) {
  EXPECT_EQ(ChunkHead(1), "1\r\n");
  EXPECT_EQ(ChunkHead(26), "1a\r\n");
  EXPECT_EQ(ChunkHead(1 << 20), "100000\r\n");
}

TEST(HttpTextTest, WritesOneHeadForEachFraming) {
  const std::string length = FormatHead({.status = 404, .body_bytes = 12}, {});
  EXPECT_TRUE(length.starts_with("HTTP/1.1 404 Not Found\r\ndate: "));
  EXPECT_TRUE(length.ends_with(" GMT\r\ncontent-length: 12\r\n\r\n"));
  const std::string chunked =
      FormatHead({.framing = BodyFraming::kChunked, .keep_alive = false}, {});
  EXPECT_TRUE(chunked.ends_with("transfer-encoding: chunked\r\nconnection: close\r\n\r\n"));
  EXPECT_THAT(chunked, Not(HasSubstr("content-length")));
  const std::string none = FormatHead({.status = 204, .framing = BodyFraming::kNone}, {});
  EXPECT_THAT(none, Not(HasSubstr("content-length")));
  EXPECT_THAT(FormatHead({.http_1_0 = true}, {}), HasSubstr("connection: keep-alive\r\n"));
}

TEST(HttpTextTest, LeavesFramingToTheServerWhateverTheHandlerSays) {
  const std::string head =
      FormatHead({.body_bytes = 1},
                 {{"Content-Length", "99"}, {"TRANSFER-ENCODING", "gzip"}, {"X-Kept", "yes"}});
  EXPECT_THAT(head, Not(HasSubstr("99")));
  EXPECT_THAT(head, Not(HasSubstr("gzip")));
  EXPECT_THAT(head, HasSubstr("X-Kept: yes\r\n"));
}

TEST(HttpTextTest, WritesErrorsInOpenAisShape) {
  const HttpResponse reply = ErrorReply(413, "request_too_large", "say \"less\"");
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.body,
            R"({"error":{"message":"say \"less\"","type":"invalid_request_error","param":null,)"
            R"("code":"request_too_large"}})");
  EXPECT_THAT(ErrorReply(408, "c", "m").body, HasSubstr("\"type\":\"timeout_error\""));
  EXPECT_THAT(ErrorReply(503, "c", "m").body, HasSubstr("\"type\":\"server_error\""));
}

TEST(HttpTextTest, SeesThatAHandlerAsksToClose) {
  EXPECT_TRUE(AsksToClose({{"a", "b"}, {"Connection", "Close"}}));
  EXPECT_FALSE(AsksToClose({{"connection", "keep-alive"}}));
}

}  // namespace
}  // namespace levin
