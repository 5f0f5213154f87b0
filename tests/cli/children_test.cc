#include "cli/children.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "cli/run_directory.h"

namespace levin {
namespace {

using std::chrono::seconds;

class ChildrenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = Children::Create();
    ASSERT_TRUE(created) << created.error().message();
    children_.emplace(std::move(*created));
  }

  int Shell(const std::string& script) {
    auto started = children_->Start({"/bin/sh", "-c", script});
    EXPECT_TRUE(started) << started.error().message();
    return started.value_or(0);
  }
  ChildEvent Next() {
    auto event = children_->Next(std::chrono::steady_clock::now() + seconds(20));
    EXPECT_TRUE(event) << "no event within 20 s";
    return event.value_or(ChildEvent{});
  }

  std::optional<Children> children_;
};

TEST_F(ChildrenTest, LinesOfBothStreamsComeBeforeTheExit) {
  const int child = Shell("echo out; echo err >&2; printf unfinished; exit 3");
  std::string out, err;
  ChildEvent event = Next();
  for (; event.kind == ChildEvent::kLine; event = Next()) {
    EXPECT_EQ(event.child, child);
    (event.is_error ? err : out) += event.line + ";";
  }
  EXPECT_EQ(out, "out;unfinished;");
  EXPECT_EQ(err, "err;");
  EXPECT_EQ(event.kind, ChildEvent::kExit);
  EXPECT_EQ(event.exit_code, 3);
  EXPECT_FALSE(children_->IsRunning(child));
}

TEST_F(ChildrenTest, AKilledChildSaysItsSignal) {
  const int child = Shell("echo up; exec sleep 100");
  EXPECT_EQ(Next().line, "up");
  children_->Signal(child, SIGKILL);
  const ChildEvent event = Next();
  EXPECT_EQ(event.kind, ChildEvent::kExit);
  EXPECT_EQ(event.exit_code, 128 + SIGKILL);
}

TEST_F(ChildrenTest, SignalsToUsAreEvents) {
  kill(getpid(), SIGTERM);
  const ChildEvent event = Next();
  EXPECT_EQ(event.kind, ChildEvent::kSignal);
  EXPECT_EQ(event.signal, SIGTERM);
}

TEST_F(ChildrenTest, AProgramThatIsNotThereIsAnErrorThatNamesIt) {
  auto started = children_->Start({"/nowhere/levin-worker"});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("/nowhere/levin-worker"), std::string::npos);
}

TEST_F(ChildrenTest, TheDestructorLeavesNoChildBehind) {
  Shell("echo $$; exec sleep 100");
  const pid_t pid = std::stoi(Next().line);
  children_.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(ChildrenTest, WithoutAnEventTheTimeRunsOut) {
  EXPECT_FALSE(children_->Next(std::chrono::steady_clock::now()));
}

TEST(RunDirectoryTest, IsPrivateAndGoesAwayAndTakesADeadOwnersWithIt) {
  std::filesystem::path stale, path;
  {
    auto first = RunDirectory::Create();
    ASSERT_TRUE(first);
    path = first->path();
    // As a process that is gone would have left it: no process has this id.
    stale = path.parent_path() / "levin-run-999999999-dead00";
    std::filesystem::create_directories(stale / "inside");
    auto second = RunDirectory::Create();
    ASSERT_TRUE(second);
    EXPECT_TRUE(std::filesystem::exists(path)) << "a living owner's folder was removed";
    EXPECT_FALSE(std::filesystem::exists(stale));
    const auto mode = std::filesystem::status(path).permissions();
    EXPECT_EQ(mode & std::filesystem::perms::all, std::filesystem::perms::owner_all);
    auto file = first->WriteOptions("options", {"--a=b"});
    ASSERT_TRUE(file);
    EXPECT_EQ(std::filesystem::status(*file).permissions() & std::filesystem::perms::all,
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_FALSE(first->WriteOptions("options", {"--a=b\n--c=d"}));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace levin
