// A worker group of our own making: every Submit is answered by a script, one step at a time when
// the test says so, or by a thread of its own. Keeps the promises of engine_client.h: sinks are
// called in order, by one thread at a time, never from inside Submit or Cancel, one OnDone each.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "router/dispatch/engine_client.h"
#include "router/dispatch/sink_queue.h"

namespace levin {

class FakeEngineClient final : public EngineClient {
 public:
  enum class Mode { kByStep, kByItself };

  // What becomes of one Submit.
  struct Script {
    std::vector<SampledToken> tokens;
    size_t tokens_per_step = 1;
    // What comes behind the last token; with an error status the reason is kError. Cut earlier,
    // with kLength, by max_new_tokens; with kStop by a stop id (the last one delivered).
    Status status;
    FinishReason reason = FinishReason::kStop;
    int64_t cached_tokens = 0;
    bool endless = false;  // after the last token nothing comes, until it is cancelled
  };
  static Script Tokens(const std::vector<TokenId>& ids);
  static Script Failure(Status status, const std::vector<TokenId>& ids_before = {});

  explicit FakeEngineClient(Mode mode = Mode::kByStep);
  ~FakeEngineClient() override;  // ends what lives with kUnavailable

  // Answers of the next Submits, in order; when none is left, the default (no token, kStop).
  void Answer(Script script);
  void AnswerAllWith(Script script);
  void RefuseNext(Status status);  // the next Submit returns this

  // One step of the engine: each live generation is admitted, or gets its next tokens, or its end.
  // Also delivers the ends of cancelled ones. True while something lives.
  bool Step();
  void RunToEnd();
  // The group is lost: every live generation ends with `status`.
  void FailAll(const Status& status);

  void set_group(std::optional<GroupInfo> group);
  void set_capacity(const Capacity& capacity);

  // Generations as they were submitted, with ordinals from 1.
  std::vector<Generation> submitted() const;
  std::vector<std::pair<uint64_t, CancelReason>> cancels() const;
  int live() const;
  // False when the time is up first.
  bool WaitForSubmits(size_t count, std::chrono::seconds at_most = std::chrono::seconds(20)) const;
  bool WaitForCancels(size_t count, std::chrono::seconds at_most = std::chrono::seconds(20)) const;

  Result<std::unique_ptr<Call>> Submit(Generation generation,
                                       std::unique_ptr<TokenSink> sink) override;
  Capacity capacity() const override;
  std::shared_ptr<const GroupInfo> group() const override;

 private:
  struct Core;  // outlived by no Call: shared with them
  class FakeCall;
  struct Entry;

  static bool StepCore(Core& core);

  std::shared_ptr<Core> core_;
  std::thread thread_;  // Mode::kByItself
};

}  // namespace levin
