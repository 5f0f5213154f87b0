#include "worker/comm/local_collective.h"

#include <cstring>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What the threads share. Each publishes where its data lie, all meet, all read, all meet again.
class Group final {
 public:
  Group(int ranks, milliseconds time_limit)
      : ranks_(ranks), time_limit_(time_limit), inputs_(ranks), arrived_(ranks, 0) {}

  int ranks() const { return ranks_; }
  void Publish(int rank, const std::byte* data) { inputs_[rank] = data; }
  const std::byte* input(int rank) const { return inputs_[rank]; }

  Status Meet(int rank) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const int64_t meeting = ++arrived_[rank];
    const auto deadline = steady_clock::now() + time_limit_;
    changed_.NotifyAll();
    while (aborted_by_ < 0) {
      const int late = Late(meeting);
      if (late < 0) return Status::Ok();
      if (!changed_.WaitUntil(mutex_, deadline) && Late(meeting) >= 0 && aborted_by_ < 0) {
        Fail(rank, "rank " + std::to_string(late) + " did not come to a collective within " +
                       std::to_string(time_limit_.count()) + " ms");
      }
    }
    if (aborted_by_ == rank) return Unavailable(reason_);
    return Unavailable("collective aborted by rank " + std::to_string(aborted_by_));
  }

  void Abort(int rank, std::string reason) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (aborted_by_ < 0) Fail(rank, std::move(reason));
  }

 private:
  int Late(int64_t meeting) const REQUIRES(mutex_) {
    for (int r = 0; r < ranks_; ++r) {
      if (arrived_[r] < meeting) return r;
    }
    return -1;
  }
  void Fail(int rank, std::string reason) REQUIRES(mutex_) {
    aborted_by_ = rank;
    reason_ = std::move(reason);
    changed_.NotifyAll();
  }

  const int ranks_;
  const milliseconds time_limit_;
  // Written before a meeting, read after it: the meeting's lock orders them.
  std::vector<const std::byte*> inputs_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int64_t> arrived_ GUARDED_BY(mutex_);
  int aborted_by_ GUARDED_BY(mutex_) = -1;
  std::string reason_ GUARDED_BY(mutex_);
};

class LocalCollective final : public Collective {
 public:
  LocalCollective(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return group_->ranks(); }

  Status AllReduceSum(std::span<float> values) override {
    if (ranks() == 1) return group_->Meet(rank_);
    // A copy is published, so that results can be written in place while others still read.
    copy_.assign(values.begin(), values.end());
    group_->Publish(rank_, reinterpret_cast<const std::byte*>(copy_.data()));
    RETURN_IF_ERROR(group_->Meet(rank_));
    const auto* first = reinterpret_cast<const float*>(group_->input(0));
    if (!values.empty()) std::memcpy(values.data(), first, values.size_bytes());
    for (int r = 1; r < ranks(); ++r) {
      const auto* other = reinterpret_cast<const float*>(group_->input(r));
      for (size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
    return group_->Meet(rank_);
  }

  Status AllGather(std::span<const std::byte> in, std::span<std::byte> out) override {
    CHECK_EQ(out.size(), in.size() * ranks());
    group_->Publish(rank_, in.data());
    RETURN_IF_ERROR(group_->Meet(rank_));
    for (int r = 0; r < ranks() && !in.empty(); ++r) {
      std::byte* place = out.data() + r * in.size();
      if (place != group_->input(r)) std::memcpy(place, group_->input(r), in.size());
    }
    return group_->Meet(rank_);
  }

  void Abort(std::string_view reason) override { group_->Abort(rank_, std::string(reason)); }

 private:
  std::shared_ptr<Group> group_;
  const int rank_;
  std::vector<float> copy_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> MakeLocalCollectives(int ranks, milliseconds time_limit) {
  CHECK_LT(0, ranks);
  auto group = std::make_shared<Group>(ranks, time_limit);
  std::vector<std::unique_ptr<Collective>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<LocalCollective>(group, r));
  return all;
}

}  // namespace levin
