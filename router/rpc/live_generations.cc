#include "router/rpc/live_generations.h"

#include <utility>

namespace levin {

std::unique_ptr<LiveGenerations::Entry> LiveGenerations::Add(const std::string& id,
                                                             const std::string& owner) {
  MutexLock lock(mutex_);
  const bool added = running_.try_emplace(id, Running{.owner = owner, .reply = nullptr}).second;
  return added ? std::make_unique<Entry>(*this, id) : nullptr;
}

void LiveGenerations::Attach(const std::string& id, std::shared_ptr<Reply> reply) {
  {
    MutexLock lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    found->second.reply = reply;
    if (!found->second.aborted) return;
  }
  reply->Cancel(CancelReason::kAbort);
}

void LiveGenerations::Remove(const std::string& id) {
  MutexLock lock(mutex_);
  running_.erase(id);
}

std::vector<std::string> LiveGenerations::Abort(const std::vector<std::string>& ids, bool all,
                                                const std::string& owner) {
  std::vector<std::string> aborted;
  std::vector<std::shared_ptr<Reply>> replies;
  {
    MutexLock lock(mutex_);
    const auto abort = [&](const std::string& id, Running& running) {
      if (running.owner != owner || std::exchange(running.aborted, true)) return;
      aborted.push_back(id);
      if (running.reply != nullptr) replies.push_back(running.reply);
    };
    if (all) {
      for (auto& [id, running] : running_) abort(id, running);
    }
    for (const std::string& id : ids) {
      const auto found = running_.find(id);
      if (found != running_.end()) abort(id, found->second);
    }
  }
  for (const auto& reply : replies) reply->Cancel(CancelReason::kAbort);
  return aborted;
}

void LiveGenerations::CancelAll() {
  std::vector<std::shared_ptr<Reply>> replies;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, running] : running_) {
      if (running.reply != nullptr) replies.push_back(running.reply);
    }
  }
  for (const auto& reply : replies) reply->Cancel(CancelReason::kShutdown);
}

}  // namespace levin
