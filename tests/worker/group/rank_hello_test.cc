#include "worker/group/rank_hello.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

RankHello Of(int rank) {
  return {.rank = rank,
          .world_size = 4,
          .build_id = "1",
          .protocol = 1,
          .config_hash = 7,
          .host = "box",
          .device = "cpu",
          .pid = 42};
}

void ExpectRefused(const RankHello& hello, const std::string& words) {
  const Status status = CheckHello(Of(0), hello);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("host box, pid 42"), std::string::npos) << status.message();
}

TEST(RankHello, AMemberFits) {
  for (const int rank : {1, 2, 3}) EXPECT_TRUE(CheckHello(Of(0), Of(rank)).ok());
}

TEST(RankHello, EveryDifferenceIsNamedWithBothValues) {
  RankHello hello = Of(2);
  hello.world_size = 8;
  ExpectRefused(hello, "world size is 8, the leader's is 4");
  hello = Of(2);
  hello.protocol = 2;
  ExpectRefused(hello, "group protocol is 2, the leader's is 1");
  hello = Of(2);
  hello.build_id = "2";
  ExpectRefused(hello, "build is 2, the leader's is 1");
  hello = Of(2);
  hello.device = "cuda";
  ExpectRefused(hello, "device is cuda, the leader's is cpu");
  hello = Of(2);
  hello.config_hash = 8;
  ExpectRefused(hello, "hash 8, expected 7");
}

TEST(RankHello, ARankOutsideTheGroupIsRefused) {
  ExpectRefused(Of(4), "ranks 1 to 3 are expected");
  ExpectRefused(Of(0), "ranks 1 to 3 are expected");
}

}  // namespace
}  // namespace levin
