#include "worker/process/epoch.h"

#include <gtest/gtest.h>

#include "tests/worker/process/temporary_folder.h"

namespace levin {
namespace {

TEST(Epoch, IsTheWallClockWithoutAFile) { EXPECT_EQ(*NextEpoch("", 1234), 1234u); }

TEST(Epoch, RisesAlsoWhenTheClockStandsOrGoesBack) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "epoch";
  EXPECT_EQ(*NextEpoch(file, 1000), 1000u);
  EXPECT_EQ(*NextEpoch(file, 1000), 1001u);
  EXPECT_EQ(*NextEpoch(file, 10), 1002u);
  EXPECT_EQ(*NextEpoch(file, 5000), 5000u);
}

TEST(Epoch, RisesAboveWhatARouterHasSeen) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "epoch";
  ASSERT_TRUE(StoreEpoch(file, 9000).ok());
  EXPECT_EQ(*NextEpoch(file, 1000), 9001u);
}

TEST(Epoch, AFileThatIsNoNumberIsAnErrorAndNoGuess) {
  const TemporaryFolder folder;
  for (const char* text : {"", "12x", "-5", "99999999999999999999999"}) {
    folder.Write("epoch", text);
    EXPECT_FALSE(NextEpoch(folder.path() / "epoch", 1000)) << text;
  }
}

TEST(Epoch, AFolderThatIsMissingIsAnError) { EXPECT_FALSE(NextEpoch("/nowhere/epoch", 1000)); }

}  // namespace
}  // namespace levin
