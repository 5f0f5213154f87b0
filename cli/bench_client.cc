#include "cli/bench_client.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/mutex.h"

namespace levin {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// When each token of the load arrived. Shared by the sinks (gRPC threads) and the waiting thread.
class Stopwatch final {
 public:
  Stopwatch(const Clock& clock, int32_t sequences)
      : clock_(clock), begin_(clock.Now()), waiting_(sequences), without_token_(sequences) {}

  void OnTokens(int64_t first_index, size_t count) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    // Counted before the last first token is: what comes in one frame with it is not decoding yet.
    if (without_token_ == 0) decoded_ += static_cast<int64_t>(count);
    if (first_index == 0 && --without_token_ == 0) decode_begin_ = clock_.Now();
    last_token_ = clock_.Now();
  }

  void OnDone(Status status) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!status.ok() && status_.ok()) status_ = std::move(status);
    end_ = clock_.Now();
    if (--waiting_ == 0) done_.NotifyAll();
  }

  Result<BenchTimes> Wait() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (waiting_ > 0)
      done_.Wait(mutex_);  // OnDone always comes: a silent group is declared lost
    if (!status_.ok()) return Error(status_);
    return BenchTimes{Seconds(end_ - begin_), Seconds(last_token_ - decode_begin_), decoded_};
  }

 private:
  const Clock& clock_;
  const TimePoint begin_;
  Mutex mutex_;
  CondVar done_;
  Status status_ GUARDED_BY(mutex_);
  int32_t waiting_ GUARDED_BY(mutex_);
  int32_t without_token_ GUARDED_BY(mutex_);
  int64_t decoded_ GUARDED_BY(mutex_) = 0;
  TimePoint decode_begin_ GUARDED_BY(mutex_);
  TimePoint last_token_ GUARDED_BY(mutex_);
  TimePoint end_ GUARDED_BY(mutex_);
};

class StopwatchSink final : public TokenSink {
 public:
  explicit StopwatchSink(std::shared_ptr<Stopwatch> watch) : watch_(std::move(watch)) {}
  void OnAdmitted(int64_t) override {}
  void OnTokens(int64_t first_index, std::span<const SampledToken> tokens) override {
    watch_->OnTokens(first_index, tokens.size());
  }
  void OnDone(Status status, FinishReason, const Usage&) override {
    watch_->OnDone(std::move(status));
  }

 private:
  std::shared_ptr<Stopwatch> watch_;
};

// splitmix64: the same ids in every run, other ones in every sequence.
std::vector<TokenId> RandomIds(int32_t sequence, int64_t count, int32_t vocab) {
  std::vector<TokenId> ids(static_cast<size_t>(count));
  uint64_t state = static_cast<uint64_t>(sequence) << 40;
  for (TokenId& id : ids) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    id = static_cast<TokenId>((z ^ (z >> 31)) % static_cast<uint64_t>(vocab));
  }
  return ids;
}

}  // namespace

Result<BenchTimes> RunBenchLoad(EngineClient& engine, const Clock& clock, const BenchLoad& load) {
  const std::shared_ptr<const GroupInfo> group = engine.group();
  if (!group) return Error(Unavailable("no worker group"));
  std::vector<Generation> generations;
  for (int32_t i = 0; i < load.sequences; ++i) {
    Generation generation;
    generation.prompt = RandomIds(i, load.prompt_tokens, group->vocab_size);
    generation.sampling.temperature = 0;
    generation.max_new_tokens = load.new_tokens;
    generations.push_back(std::move(generation));
  }
  auto watch = std::make_shared<Stopwatch>(clock, load.sequences);
  std::vector<std::unique_ptr<Call>> calls;
  for (Generation& generation : generations) {
    Result<std::unique_ptr<Call>> call =
        engine.Submit(std::move(generation), std::make_unique<StopwatchSink>(watch));
    if (!call) return Error(std::move(call).error());
    calls.push_back(*std::move(call));
  }
  return watch->Wait();
}

}  // namespace levin
