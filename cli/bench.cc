#include <signal.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <optional>
#include <random>

#include "cli/bench_client.h"
#include "cli/bench_kernel.h"
#include "cli/commands.h"
#include "cli/worker_group.h"
#include "common/base/mutex.h"
#include "common/config/defined_tokens.h"
#include "common/config/model_config.h"
#include "router/rpc/grpc_engine_client.h"

namespace levin {
namespace {

namespace json = boost::json;

int Complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "levin bench: %s\n", status.message().c_str());
  return exit_code;
}

// Until the group can compute. A worker that ends first is the error.
Status WaitReady(WorkerGroup& group, Children& children) {
  while (!group.ready()) {
    const TimePoint far = std::chrono::steady_clock::now() + std::chrono::hours(1);
    const auto event = children.Next(group.kill_at().value_or(far));
    if (event && event->kind == ChildEvent::kSignal)
      return {Code::kCancelled, "stopped by a signal"};
    if (event) group.Handle(*event);
    if (group.gone()) return Internal("the worker group could not start: " + group.end_reason());
    group.KillIfLate(std::chrono::steady_clock::now());
  }
  return Status::Ok();
}

// Set by the client's thread when the Session stands.
class Gate final {
 public:
  void Notify() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  template <typename Condition>
  bool WaitFor(Condition condition, Duration limit) EXCLUDES(mutex_) {
    const TimePoint until = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (!condition()) {
      if (!changed_.WaitUntil(mutex_, until)) return condition();
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
};

// Tokens per second of one round.
Result<double> Measure(EngineClient& engine, const Clock& clock, const BenchOptions& options) {
  BenchLoad load;
  load.sequences = options.batch;
  if (options.gen > 0) {
    load.prompt_tokens = std::max<int64_t>(1, int64_t{options.depth} + options.prompt);
    load.new_tokens = options.gen + 1;  // the first one is the prompt's
    ASSIGN_OR_RETURN(const BenchTimes times, RunBenchLoad(engine, clock, load));
    return static_cast<double>(times.decoded_tokens) / times.decode_s;
  }
  load.prompt_tokens = int64_t{options.depth} + options.prompt;
  ASSIGN_OR_RETURN(const BenchTimes whole, RunBenchLoad(engine, clock, load));
  double seconds = whole.total_s;
  if (options.depth > 0) {
    load.prompt_tokens = options.depth;
    ASSIGN_OR_RETURN(const BenchTimes before, RunBenchLoad(engine, clock, load));
    seconds -= before.total_s;
  }
  return static_cast<double>(int64_t{options.prompt} * options.batch) / seconds;
}

Result<json::object> Bench(EngineClient& engine, const Clock& clock, const BenchOptions& options) {
  BenchLoad warm_up;
  warm_up.sequences = options.batch;
  warm_up.prompt_tokens = 64;
  warm_up.new_tokens = 4;
  ASSIGN_OR_RETURN([[maybe_unused]] const BenchTimes warm, RunBenchLoad(engine, clock, warm_up));
  double best = 0;
  for (int32_t round = 0; round < options.rounds; ++round) {
    ASSIGN_OR_RETURN(const double rate, Measure(engine, clock, options));
    std::fprintf(stderr, "round %d: %.1f tokens/s\n", round + 1, rate);
    best = std::max(best, rate);
  }
  return json::object{{"tokens_per_s", best},
                      {"what", options.gen > 0 ? "decode" : "prefill"},
                      {"prompt", options.prompt},
                      {"gen", options.gen},
                      {"depth", options.depth},
                      {"batch", options.batch},
                      {"tensor_parallel_size", options.worker.world_size},
                      {"threads", options.worker.cpu_threads},
                      {"dtype", options.worker.dtype},
                      {"quantization", options.worker.quantization}};
}

void StopGroup(WorkerGroup& group, Children& children) {
  group.Signal(SIGTERM);
  const TimePoint limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!group.gone() && std::chrono::steady_clock::now() < limit) {
    const auto event = children.Next(limit);
    if (event) group.Handle(*event);
  }
}

}  // namespace

int RunBench(int argc, const char* const* argv) {
  Result<Parsed<BenchOptions>> parsed = ParseBenchOptions(argc, argv);
  if (!parsed) return Complain(parsed.error(), 2);
  if (!parsed->help.empty()) return std::fputs(parsed->help.c_str(), stdout), 0;
  BenchOptions& options = parsed->options;
  if (options.kernel) return RunKernelBench(options);
  const Result<ModelConfig> config = LoadModelConfig(options.worker.model);
  if (!config) return Complain(config.error(), 3);
  if (Status status = CheckTensorParallel(*config, options.worker.world_size); !status.ok()) {
    return Complain(status, 2);
  }
  Result<Children> children = Children::Create();
  if (!children) return Complain(children.error(), 1);
  const Result<RunDirectory> directory = RunDirectory::Create();
  if (!directory) return Complain(directory.error(), 1);
  WorkerGroup group(options.worker, *directory, *children);
  Status status = group.Start();
  if (status.ok()) status = WaitReady(group, *children);
  if (!status.ok()) return Complain(status, std::max(1, group.exit_code()));

  const SystemClock clock;
  Gate gate;
  GrpcEngineClientOptions client_options;
  client_options.address = group.engine_address();
  client_options.router_id = "bench";
  client_options.router_incarnation = std::random_device()();
  Result<json::object> result = Error(Unavailable("the worker group did not answer within 30 s"));
  {
    GrpcEngineClient engine(client_options, clock, [&gate] { gate.Notify(); });
    if (gate.WaitFor([&] { return engine.group() != nullptr; }, std::chrono::seconds(30))) {
      result = Bench(engine, clock, options);
    }
  }
  StopGroup(group, *children);
  if (!result) return Complain(result.error(), 1);
  std::printf("%s\n", json::serialize(*result).c_str());
  return 0;
}

}  // namespace levin
