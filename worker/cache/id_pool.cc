#include "worker/cache/id_pool.h"

#include <utility>

#include "common/base/check.h"

namespace levin {

IdLease::IdLease(IdLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), ids_(std::move(other.ids_)) {
  other.ids_.clear();
}

IdLease& IdLease::operator=(IdLease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  ids_ = std::move(other.ids_);
  other.ids_.clear();
  return *this;
}

void IdLease::Release() {
  if (pool_ != nullptr) pool_->Return(ids_);
  pool_ = nullptr;
  ids_.clear();
}

IdPool::IdPool(int64_t size) : lent_(static_cast<size_t>(size), false) {
  CHECK(size >= 0 && size <= INT32_MAX, size);
  free_.reserve(lent_.size());
  for (int64_t id = size - 1; id >= 0; --id) free_.push_back(static_cast<int32_t>(id));
}

std::optional<IdLease> IdPool::Acquire(int64_t count) {
  CHECK_LE(0, count);
  if (count > free()) return std::nullopt;
  std::vector<int32_t> ids(free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - static_cast<size_t>(count));
  for (int32_t id : ids) lent_[static_cast<size_t>(id)] = true;
  return IdLease(this, std::move(ids));
}

void IdPool::Return(std::span<const int32_t> ids) {
  for (size_t i = ids.size(); i-- > 0;) {
    CHECK(lent_[static_cast<size_t>(ids[i])], "id returned twice", ids[i]);
    lent_[static_cast<size_t>(ids[i])] = false;
    free_.push_back(ids[i]);
  }
}

}  // namespace levin
