#include "common/config/shared_flags.h"

namespace levin {

void AddLog(FlagSet& flags, LogOptions& log) {
  flags.AddChoice("--log-level,--uvicorn-log-level", log.level,
                  {"trace", "debug", "info", "warning", "error"}, "Lowest level that is logged");
  flags.AddChoice("--log-format", log.format, {"text", "json"}, "json: one line per event");
}

void AddTypes(FlagSet& flags, std::string& dtype, std::string& quantization) {
  flags.AddChoice("--dtype", dtype, {"auto", "bfloat16", "float32"},
                  "Activations and KV; float32 is the exactness mode");
  flags.AddChoice("--quantization,-q", quantization, {"auto", "none", "experts_int8"},
                  "auto: as the checkpoint says; experts_int8: made while loading");
}

void AddModelNumbers(FlagSet& flags, WorkerOptions& worker) {
  AddTypes(flags, worker.dtype, worker.quantization);
  flags.AddSwitch("--batch-invariant", worker.batch_invariant,
                  "The same ids alone, in any batch and at every start; float32 always is");
  flags.AddInt("--cpu-threads", worker.cpu_threads,
               "Compute threads of the whole group; 0: the cores", {0, 4096});
  flags.AddPositive("--lightning-norm-eps", worker.lightning_norm_eps,
                    "eps of the lightning layers' inner norm");
  flags.AddChoice("--device", worker.device, {"auto", "cpu"}, "Compute device");
}

void AddCache(FlagSet& flags, WorkerOptions& worker) {
  flags.AddBytes("--cache-bytes", worker.cache_bytes,
                 "State and KV of the whole group (8GiB accepted); 0: a quarter of the free "
                 "memory, at most 8 GiB");
  flags.AddInt("--max-num-seqs,--max-running-requests", worker.max_num_seqs,
               "Sequences that run at once", {1, 65536});
  flags.AddInt("--max-num-batched-tokens,--chunked-prefill-size", worker.max_num_batched_tokens,
               "Tokens of one step, at most", {64, 1 << 20});
}

void AddRouter(FlagSet& flags, RouterOptions& router) {
  flags.AddList("--served-model-name", router.served_model_names,
                "Names clients may use (repeatable)");
  flags.Add("--host", router.host, "Address to listen on");
  flags.AddInt("--port", router.port, "HTTP port; 0: any free one", {0, 65535});
  flags.AddList("--api-key", router.api_keys,
                "Key that clients must send (repeatable; or LEVIN_API_KEY)");
  flags.AddCount("--default-max-tokens", router.default_max_tokens,
                 "Output limit where the request names none; 0: by model family");
  flags.AddCount("--max-output-tokens", router.max_output_tokens, "Cap of max_tokens; 0: none");
  flags.AddCount("--max-queued-requests", router.max_queued_requests, "429 beyond");
  flags.AddTime("--request-timeout", router.request_timeout_ms, "Time limit of a request; 0: none");
  flags.AddTime("--shutdown-timeout", router.shutdown_timeout_ms, "How long a drain may take");
  flags.AddTime("--sse-ping-interval", router.sse_ping_interval_ms,
                "Comment lines in silent streams; 0: off");
  flags.AddInt("--max-logprobs", router.max_logprobs, "Largest top_logprobs", {0, 1024});
  flags.AddChoice("--chat-template", router.chat_template,
                  {"auto", "minimax-m1", "minimax-m1-tools", "minimax-text-01"},
                  "Built-in renderer");
  flags.AddChoice("--reasoning-parser", router.reasoning_parser, {"none", "auto", "minimax_m1"},
                  "Separate the think block from the answer");
}

void AddGrpcPort(FlagSet& flags, std::string& text) {
  flags.Add("--grpc-port", text, "gRPC port; 0: any free one; off: none");
}

}  // namespace levin
