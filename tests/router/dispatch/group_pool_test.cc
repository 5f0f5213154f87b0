#include "router/dispatch/group_pool.h"

#include <gtest/gtest.h>

#include "tests/support/fake_engine_client.h"
#include "tests/support/recording_sink.h"

namespace levin {
namespace {

class GroupPoolTest : public ::testing::Test {
 protected:
  GroupPoolTest() {
    Name(first_, "first");
    Name(second_, "second");
  }
  static void Name(FakeEngineClient& group, const std::string& name) {
    GroupInfo info;
    info.group_id = name;
    group.set_group(info);
  }
  static Capacity Free(int64_t blocks) {
    Capacity capacity;
    capacity.free_blocks = blocks;
    return capacity;
  }

  FakeEngineClient first_, second_;
  GroupPool pool_{{&first_, &second_}};
};

TEST_F(GroupPoolTest, TakesTheGroupWithTheMostFreeBlocks) {
  first_.set_capacity(Free(10));
  second_.set_capacity(Free(11));
  EXPECT_EQ(pool_.group()->group_id, "second");
  EXPECT_EQ(pool_.capacity().free_blocks, 11);
  auto call = pool_.Submit({}, std::make_unique<RecordingSink>(std::make_shared<SinkRecord>()));
  EXPECT_EQ(second_.submitted().size(), 1u);
  EXPECT_EQ(first_.submitted().size(), 0u);
}

TEST_F(GroupPoolTest, PassesOverAGroupThatIsNotHealthy) {
  second_.set_capacity(Free(11));
  second_.set_group(std::nullopt);
  EXPECT_EQ(pool_.group()->group_id, "first");
}

TEST_F(GroupPoolTest, KnowsNoGroupWhenNoneIsHealthy) {
  first_.set_group(std::nullopt);
  second_.set_group(std::nullopt);
  EXPECT_EQ(pool_.group(), nullptr);
}

}  // namespace
}  // namespace levin
