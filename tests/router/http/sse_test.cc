#include "router/http/sse.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

TEST(SseTest, FramesOneEventPerLineOfData) {
  EXPECT_EQ(SseEvent(R"({"a":1})"), "data: {\"a\":1}\n\n");
  EXPECT_EQ(SseEvent(""), "data: \n\n");
}

TEST(SseTest, TheLastEventIsTheLineThatClientsCompareExactly) {
  EXPECT_EQ(kSseDone, SseEvent("[DONE]"));
}

TEST(SseTest, ALineBreakCannotEndAnEventEarly) {
  EXPECT_EQ(SseEvent("a\nb"), "data: a\ndata: b\n\n");
  EXPECT_EQ(SseEvent("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n");
  EXPECT_EQ(SseEvent("a\n\nevent: forged"), "data: a\ndata: \ndata: event: forged\n\n");
}

TEST(SseTest, SeveralEventsShareOneWrite) {
  std::string out;
  AppendSseEvent("1", out);
  AppendSseEvent("2", out);
  EXPECT_EQ(out, "data: 1\n\ndata: 2\n\n");
}

TEST(SseTest, APingIsACommentAndAWholeEvent) {
  EXPECT_TRUE(kSsePing.starts_with(':'));
  EXPECT_TRUE(kSsePing.ends_with("\n\n"));
}

TEST(SseTest, HeadersKeepProxiesFromHoldingEventsBack) {
  const HttpHeaders expected = {{"content-type", "text/event-stream; charset=utf-8"},
                                {"cache-control", "no-cache"},
                                {"x-accel-buffering", "no"}};
  EXPECT_EQ(SseHeaders(), expected);
}

}  // namespace
}  // namespace levin
