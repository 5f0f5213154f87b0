#include "worker/process/leftover_segments.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/worker/process/temporary_folder.h"

namespace levin {
namespace {

int64_t PidOfTheDead() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST(LeftoverSegments, OnlyThoseOfDeadProcessesGo) {
  const TemporaryFolder folder;
  const std::string mine = SegmentName(getpid(), 5).substr(1);
  const std::string dead = SegmentName(PidOfTheDead(), 5).substr(1);
  for (const std::string& name :
       {mine, dead, std::string("levin-x-5"), std::string("other-1-5"), std::string("levin-7")})
    folder.Write(name, "x");
  EXPECT_EQ(RemoveLeftoverSegments(folder.path()), 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / dead));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / mine));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "levin-x-5"));
}

TEST(LeftoverSegments, AFolderThatIsMissingIsFine) {
  EXPECT_EQ(RemoveLeftoverSegments("/nowhere"), 0);
}

}  // namespace
}  // namespace levin
