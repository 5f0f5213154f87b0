// The streams of this router that run now, by generation id, so that another call may end them.
// Any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "router/inference/generator.h"

namespace levin {

class LiveGenerations final {
 public:
  // One running stream; its place in the table goes with it.
  class Entry final {
   public:
    Entry(LiveGenerations& table, std::string id) : table_(table), id_(std::move(id)) {}
    ~Entry() { table_.Remove(id_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    const std::string& id() const { return id_; }
    // The reply, once there is one; ends at once if it was aborted meanwhile.
    void Attach(std::shared_ptr<Reply> reply) { table_.Attach(id_, std::move(reply)); }

   private:
    LiveGenerations& table_;
    const std::string id_;
  };

  // Null when the id is taken. `owner`: whose key asked; the table must outlive the entry.
  std::unique_ptr<Entry> Add(const std::string& id, const std::string& owner) EXCLUDES(mutex_);

  // Ends those of `ids` that run and belong to `owner`, or all of the owner's; tells which.
  std::vector<std::string> Abort(const std::vector<std::string>& ids, bool all,
                                 const std::string& owner) EXCLUDES(mutex_);
  void CancelAll() EXCLUDES(mutex_);  // of every owner, as the server shuts down

 private:
  struct Running {
    std::string owner;
    std::shared_ptr<Reply> reply;  // null until the group took it
    bool aborted = false;
  };

  void Attach(const std::string& id, std::shared_ptr<Reply> reply) EXCLUDES(mutex_);
  void Remove(const std::string& id) EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Running> running_ GUARDED_BY(mutex_);
};

}  // namespace levin
