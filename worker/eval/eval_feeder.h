// Stands where routers stand in serving: submits a job's prompts to the engine and keeps what was
// drawn. One after the other, or all at once. The engine's thread.
#pragma once

#include <vector>

#include "common/base/mailbox.h"
#include "common/base/status.h"
#include "worker/engine/eval_job.h"
#include "worker/engine/links.h"
#include "worker/engine/router_messages.h"

namespace levin {

class EvalFeeder final : public Outbox {
 public:
  // Both must outlive it.
  EvalFeeder(const EvalJob& job, Mailbox<RouterCommand>& inbox);

  // Before Engine::Run, which ends when the job has: the feeder closes the inbox.
  // kResourceExhausted when the inbox does not hold the batch.
  Status Start();

  // After Engine::Run: the first thing that went wrong, with the prompt's name.
  const Status& status() const { return status_; }
  // [prompts][greedy], when the status is OK.
  const std::vector<std::vector<TokenId>>& greedy() const { return greedy_; }

  void Deliver(std::vector<RouterEvent> events) override;
  void OnCapacity(const Capacity&) override {}

 private:
  Status Submit(size_t prompt);
  void OnEnd(size_t prompt, Status status);

  const EvalJob& job_;
  Mailbox<RouterCommand>& inbox_;
  std::vector<std::vector<TokenId>> greedy_;
  size_t ended_ = 0;
  Status status_;
};

}  // namespace levin
