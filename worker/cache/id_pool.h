// Ids 0 .. size-1 of equal pieces of memory, lent out in leases that give themselves back. The id
// returned last is lent first: a wrong reuse shows early, and the order is deterministic. One
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace levin {

class IdPool;

// Holds ids; gives them back when it dies. Move only. The pool must outlive it.
class IdLease final {
 public:
  IdLease() = default;
  ~IdLease() { Release(); }
  IdLease(IdLease&& other) noexcept;
  IdLease& operator=(IdLease&& other) noexcept;

  std::span<const int32_t> ids() const { return ids_; }
  void Release();

 private:
  friend class IdPool;
  IdLease(IdPool* pool, std::vector<int32_t> ids) : pool_(pool), ids_(std::move(ids)) {}

  IdPool* pool_ = nullptr;
  std::vector<int32_t> ids_;
};

class IdPool final {
 public:
  explicit IdPool(int64_t size);
  IdPool(const IdPool&) = delete;
  IdPool& operator=(const IdPool&) = delete;

  // All or nothing.
  std::optional<IdLease> Acquire(int64_t count);

  int64_t size() const { return static_cast<int64_t>(lent_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }

 private:
  friend class IdLease;
  void Return(std::span<const int32_t> ids);

  std::vector<int32_t> free_;
  std::vector<bool> lent_;
};

}  // namespace levin
