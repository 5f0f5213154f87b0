// The waiting list and who leaves it next. In order of arrival, but one that fits may pass earlier
// ones that do not, each of those `skips` times at most: then memory is saved up for it. One
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "worker/schedule/sequence.h"

namespace levin {

class WaitingList final {
 public:
  explicit WaitingList(int32_t skips) : skips_(skips) {}

  void Push(WaitingGeneration waiting) { list_.push_back(std::move(waiting)); }
  std::optional<WaitingGeneration> Remove(RequestKey key);
  std::vector<WaitingGeneration> RemoveExpired(TimePoint now);

  // Offers the waiting ones in order; `admit` takes one over and says true, or leaves it because it
  // does not fit. Ends when `full` says that nobody more can be admitted whatever its size.
  void Admit(const std::function<bool()>& full,
             const std::function<bool(WaitingGeneration&)>& admit);

  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  int64_t prompt_tokens() const;
  bool Contains(RequestKey key) const;

 private:
  const int32_t skips_;
  std::list<WaitingGeneration> list_;
};

}  // namespace levin
