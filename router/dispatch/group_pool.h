// Several worker groups as one: a generation goes to the healthy group with the most free blocks.
// Thread-safe where the groups are; they must live longer.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "router/dispatch/engine_client.h"

namespace levin {

class GroupPool final : public EngineClient {
 public:
  // At least one; the first of equals is preferred.
  explicit GroupPool(std::vector<EngineClient*> groups) : groups_(std::move(groups)) {}

  Result<std::unique_ptr<Call>> Submit(Generation generation,
                                       std::unique_ptr<TokenSink> sink) override;
  Capacity capacity() const override;                       // of the group that is next
  std::shared_ptr<const GroupInfo> group() const override;  // the same

 private:
  EngineClient& Choose() const;

  const std::vector<EngineClient*> groups_;
};

}  // namespace levin
