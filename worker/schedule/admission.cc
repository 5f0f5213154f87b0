#include "worker/schedule/admission.h"

#include <algorithm>
#include <utility>

namespace levin {

std::optional<WaitingGeneration> WaitingList::Remove(RequestKey key) {
  for (auto it = list_.begin(); it != list_.end(); ++it) {
    if (it->key != key) continue;
    WaitingGeneration waiting = std::move(*it);
    list_.erase(it);
    return waiting;
  }
  return std::nullopt;
}

std::vector<WaitingGeneration> WaitingList::RemoveExpired(TimePoint now) {
  std::vector<WaitingGeneration> expired;
  for (auto it = list_.begin(); it != list_.end();) {
    if (it->deadline > now) {
      ++it;
      continue;
    }
    expired.push_back(std::move(*it));
    it = list_.erase(it);
  }
  return expired;
}

void WaitingList::Admit(const std::function<bool()>& full,
                        const std::function<bool(WaitingGeneration&)>& admit) {
  std::vector<WaitingGeneration*> passed_over;
  bool saving_up = false;
  for (auto it = list_.begin(); it != list_.end() && !saving_up && !full();) {
    if (!admit(*it)) {
      saving_up = it->passed >= skips_;
      passed_over.push_back(&*it++);
      continue;
    }
    it = list_.erase(it);
    for (WaitingGeneration* waiting : passed_over) saving_up |= ++waiting->passed >= skips_;
  }
}

int64_t WaitingList::prompt_tokens() const {
  int64_t tokens = 0;
  for (const WaitingGeneration& waiting : list_)
    tokens += static_cast<int64_t>(waiting.generation.prompt.size());
  return tokens;
}

bool WaitingList::Contains(RequestKey key) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const WaitingGeneration& waiting) { return waiting.key == key; });
}

}  // namespace levin
