// Command line and environment into plain structs; CLI11 lives in flag_set.cc alone. Precedence:
// command line, then LEVIN_<FLAG>, then the built-in default. `--a-b` = `--a_b`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace levin {

struct LogOptions {
  std::string level = "info";
  std::string format = "text";  // or json
};

// What every rank is told; equal on all ranks except `rank` and the ports.
struct WorkerOptions {
  std::string model;
  int rank = 0;
  int world_size = 1;
  std::string leader;  // HOST:PORT or unix:PATH of the leader's Group service
  std::string engine_listen = "127.0.0.1:50061";  // leader only; HOST:PORT or unix:PATH
  std::string group_listen = "127.0.0.1:50062";   // leader only
  std::string metrics_host = "127.0.0.1";
  int metrics_port = -1;              // -1: none; 0: any free one
  std::string epoch_file;             // empty: the epoch is the wall clock's
  std::string dtype = "bfloat16";     // or float32
  std::string quantization = "auto";  // as the checkpoint says; or none, experts_int8
  // The same ids in any company and from start to start (protocol.md 17). Set by ResolveAuto:
  // float32 always is, bfloat16 when asked for.
  std::optional<bool> batch_invariant;
  int64_t cache_bytes = 0;    // of the whole group; 0: a quarter of the free memory, at most 8 GiB
  int cpu_threads = 0;        // of the whole group; 0: the cores
  int64_t max_model_len = 0;  // 0: what the cache holds for one request
  int32_t max_num_seqs = 256;
  int32_t max_num_batched_tokens = 8192;
  float lightning_norm_eps = 1e-6f;
  std::string device = "cpu";
  // levin eval: generations come from this job file (JSON, see worker/engine/eval_job.h) instead of
  // the Engine service; the process ends when the job is done.
  std::string eval_job;
  int corrupt_rank = -1;  // test hook: this rank flips weights in memory after loading
  LogOptions log;
};

struct RouterOptions {
  std::string model;  // folder with config.json and tokenizer.json
  std::vector<std::string> served_model_names;
  std::vector<std::string> groups;  // Engine addresses: HOST:PORT or unix:PATH
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string grpc_host;  // empty: as host
  int grpc_port = 50051;  // -1: off
  std::vector<std::string> api_keys;
  int64_t max_model_len = 0;       // 0: the group's
  int64_t default_max_tokens = 0;  // 0: by model family
  int64_t max_output_tokens = 0;   // 0: no cap
  int64_t max_queued_requests = 1024;
  int64_t request_timeout_ms = 0;  // 0: none
  int64_t shutdown_timeout_ms = 90'000;
  int64_t sse_ping_interval_ms = 15'000;  // 0: off
  int32_t max_logprobs = 20;
  std::string chat_template = "auto";
  std::string reasoning_parser = "none";
  std::string dtype = "bfloat16";  // shown by GetModel and in the fingerprint
  std::string quantization = "none";
  LogOptions log;
};

struct ServeOptions {
  WorkerOptions worker;
  RouterOptions router;
};

// levin eval: the same worker processes, plans and kernels as serving, over known prompts.
struct EvalOptions {
  WorkerOptions worker;
  std::string ids_file;  // JSON {"name": [ids...], ...}
  std::string out_file;  // safetensors
  int32_t greedy = 0;
  bool states = false;
  bool trace = false;
  bool batch = false;
  int32_t last = 0;          // > 0: so many last positions only
  std::string compare_file;  // safetensors of known values; empty: nothing is compared
  double tolerance = 1e-4;   // of a tensor's largest value
  int32_t chunk_tokens = 0;  // 0: as in serving
};

// levin plan: does it fit, and how well? Reads headers, no weights.
struct PlanOptions {
  std::string model;
  int world_size = 1;
  std::string dtype = "bfloat16";     // or float32
  std::string quantization = "auto";  // as WorkerOptions
  int64_t device_bytes = 0;           // of each rank's device
  double gpu_memory_utilization = 0.9;
  int64_t overhead_bytes = -1;  // -1: the published one (memory_plan.h)
  int64_t max_model_len = 0;    // 0: proposed
  int32_t max_num_seqs = 256;
  bool json = false;
};

// levin bench: tokens per second of the engine, without load time and warm-up; or of its kernels.
struct BenchOptions {
  bool kernel = false;        // no model: the CPU kernels beside the machine's roof
  std::string which = "all";  // of them
  WorkerOptions worker;
  int32_t prompt = 0;  // tokens to prefill
  int32_t gen = 0;     // tokens to generate; > 0: these are what is timed
  int32_t depth = 0;   // tokens in every sequence before the clock starts
  int32_t batch = 1;   // sequences at once
  int32_t rounds = 3;  // the best counts
};

// `help` is set when --help or --version was asked: print it and exit 0. Errors: exit 2.
template <typename T>
struct Parsed {
  T options;
  std::string help;
};

Result<Parsed<WorkerOptions>> ParseWorkerOptions(int argc, const char* const* argv);
Result<Parsed<RouterOptions>> ParseRouterOptions(int argc, const char* const* argv);
// argv[0] is the program; `levin serve MODEL ...` passes what follows "serve".
Result<Parsed<ServeOptions>> ParseServeOptions(int argc, const char* const* argv);

Result<Parsed<EvalOptions>> ParseEvalOptions(int argc, const char* const* argv);
Result<Parsed<BenchOptions>> ParseBenchOptions(int argc, const char* const* argv);
Result<Parsed<PlanOptions>> ParsePlanOptions(int argc, const char* const* argv);

}  // namespace levin
