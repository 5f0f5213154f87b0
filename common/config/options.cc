#include "common/config/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <span>

#include "common/base/version.h"

namespace levin {
namespace {

// ---- numbers with units

struct Unit {
  const char* suffix;
  int64_t factor;
};

constexpr Unit kCountUnits[] = {{"", 1}, {"k", 1000}, {"m", 1000'000}, {"g", 1000'000'000}};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"b", 1},
                               {"k", 1000},
                               {"kb", 1000},
                               {"m", 1000'000},
                               {"mb", 1000'000},
                               {"g", 1000'000'000},
                               {"gb", 1000'000'000},
                               {"kib", 1 << 10},
                               {"mib", 1 << 20},
                               {"gib", 1 << 30},
                               {"tib", int64_t{1} << 40},
                               {"t", 1000'000'000'000},
                               {"tb", 1000'000'000'000}};

constexpr Unit kTimeUnits[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

Result<int64_t> ParseWithUnits(const std::string& text, std::span<const Unit> units,
                               const char* expected) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string suffix(rest, end);
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& unit : units) {
    if (error != std::errc() || suffix != unit.suffix) continue;
    const double scaled = value * static_cast<double>(unit.factor);
    if (!(scaled >= 0) || scaled > 9.0e18) break;
    return static_cast<int64_t>(scaled);
  }
  return Error(InvalidArgument("'" + text + "' is not a number, expected " + expected));
}

// ---- the spelling of flags

// --max_model_len=4 and -tp 2 as CLI11 knows them.
std::string Canonical(std::string argument) {
  if (argument == "-tp") return "--tensor-parallel-size";
  if (argument.rfind("-tp=", 0) == 0) return "--tensor-parallel-size" + argument.substr(3);
  if (argument.rfind("--", 0) != 0) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<ptrdiff_t>(end), '_', '-');
  return argument;
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// ---- one command's flags

// Flags that other engines' launch lines carry and that change nothing here.
constexpr const char* kIgnoredFlags[] = {"--trust-remote-code",    "--disable-custom-all-reduce",
                                         "--use-v2-block-manager", "--enable-request-id-headers",
                                         "--enforce-eager",        "--enable-chunked-prefill"};
constexpr const char* kIgnoredValues[] = {"--swap-space",
                                          "--block-size",
                                          "--max-seq-len-to-capture",
                                          "--distributed-executor-backend",
                                          "--task",
                                          "--tokenizer-mode",
                                          "--compilation-config",
                                          "--limit-mm-per-prompt",
                                          "--download-dir",
                                          "--guided-decoding-backend"};

class Command final {
 public:
  Command(std::string name, std::string about) : app_(std::move(about), std::move(name)) {
    app_.allow_extras();
    app_.set_help_flag("--help,-h", "Print this help and exit");
    app_.add_flag("--version", version_, "Print the version and exit");
    app_.option_defaults()->always_capture_default();
  }

  CLI::Option* Add(const std::string& flag, std::string& value, const std::string& about) {
    return WithEnvironment(flag, app_.add_option(flag, value, about));
  }
  template <typename Number>
  CLI::Option* AddNumber(const std::string& flag, Number& value, const std::string& about) {
    return WithEnvironment(flag, app_.add_option(flag, value, about));
  }
  CLI::Option* AddList(const std::string& flag, std::vector<std::string>& values,
                       const std::string& about) {
    return WithEnvironment(flag, app_.add_option(flag, values, about)->delimiter(','));
  }
  CLI::Option* AddCount(const std::string& flag, int64_t& value, const std::string& about) {
    return AddParsed(flag, value, about, &ParseCount);
  }
  CLI::Option* AddBytes(const std::string& flag, int64_t& value, const std::string& about) {
    return AddParsed(flag, value, about, &ParseBytes);
  }
  CLI::Option* AddTime(const std::string& flag, int64_t& ms, const std::string& about) {
    return AddParsed(flag, ms, about, &ParseTimeMs);
  }
  CLI::Option* AddChoice(const std::string& flag, std::string& value,
                         std::vector<std::string> choices, const std::string& about) {
    return Add(flag, value, about)->check(CLI::IsMember(std::move(choices)));
  }
  CLI::Option* AddPositional(const std::string& name, std::string& value,
                             const std::string& about) {
    return app_.add_option(name, value, about);
  }
  void AddFlag(const std::string& flag, bool& value, const std::string& about) {
    app_.add_flag(flag, value, about);
  }
  void AddIgnored() {
    for (const char* flag : kIgnoredFlags) app_.add_flag(flag, ignored_)->group("");
    for (const char* flag : kIgnoredValues) app_.add_option(flag, ignored_value_)->group("");
  }

  // Fills the variables. `help` is set when the answer is a text instead.
  Status Parse(int argc, const char* const* argv, std::string& help) {
    std::vector<std::string> arguments;
    for (int i = 1; i < argc; ++i) arguments.push_back(Canonical(argv[i]));
    RETURN_IF_ERROR(ExpandOptionsFiles(arguments));
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app_.parse(arguments);
    } catch (const CLI::CallForHelp&) {
      help = app_.help();
      return Status::Ok();
    } catch (const CLI::ParseError& error) {
      return InvalidArgument(error.what());
    }
    if (version_) help = std::string("levin ") + kVersion + "\n";
    for (const std::string& extra : app_.remaining()) RETURN_IF_ERROR(Unknown(extra));
    return Status::Ok();
  }

 private:
  CLI::Option* WithEnvironment(const std::string& flag, CLI::Option* option) {
    std::string name = "LEVIN_" + flag.substr(2, flag.find(',') - 2);
    for (char& c : name)
      c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return option->envname(name);
  }

  CLI::Option* AddParsed(const std::string& flag, int64_t& value, const std::string& about,
                         Result<int64_t> (*parse)(const std::string&)) {
    auto assign = [&value, parse, name = flag.substr(0, flag.find(','))](const std::string& text) {
      Result<int64_t> parsed = parse(text);
      if (!parsed) throw CLI::ValidationError(name + ": " + parsed.error().message());
      value = *parsed;
    };
    return WithEnvironment(flag, app_.add_option_function<std::string>(flag, assign, about));
  }

  // --options-file FILE: one argument a line, in place; how a supervisor hands over keys without
  // showing them in the process list.
  static Status ExpandOptionsFiles(std::vector<std::string>& arguments) {
    const std::string flag = "--options-file=";
    std::vector<std::string> expanded;
    for (const std::string& argument : arguments) {
      if (argument.rfind(flag, 0) != 0) {
        expanded.push_back(argument);
        continue;
      }
      const std::string path = argument.substr(flag.size());
      std::ifstream file(path);
      if (!file) return InvalidArgument("--options-file: cannot read '" + path + "'");
      for (std::string line; std::getline(file, line);) {
        if (!line.empty()) expanded.push_back(Canonical(line));
      }
    }
    arguments = std::move(expanded);
    return Status::Ok();
  }

  Status Unknown(const std::string& argument) const {
    if (argument.empty() || argument[0] != '-') {
      return InvalidArgument("unexpected argument '" + argument + "'");
    }
    const std::string name = argument.substr(0, argument.find('='));
    std::string nearest;
    size_t best = std::numeric_limits<size_t>::max();
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& known : option->get_lnames()) {
        const size_t distance = EditDistance(name, "--" + known);
        if (distance < best) best = distance, nearest = "--" + known;
      }
    }
    return InvalidArgument("unknown flag '" + name + "', the nearest known one is '" + nearest +
                           "'");
  }

  CLI::App app_;
  bool version_ = false;
  bool ignored_ = false;
  std::string ignored_value_;
};

// ---- groups of flags that several commands share

void AddLog(Command& command, LogOptions& log) {
  command.AddChoice("--log-level,--uvicorn-log-level", log.level,
                    {"trace", "debug", "info", "warning", "error"}, "Lowest level that is logged");
  command.AddChoice("--log-format", log.format, {"text", "json"}, "json: one line per event");
}

void AddTypes(Command& command, std::string& dtype, std::string& quantization) {
  command.AddChoice("--dtype", dtype, {"auto", "bfloat16", "float32"},
                    "Activations and KV; float32 is the exactness mode");
  command.AddChoice("--quantization,-q", quantization, {"auto", "none", "experts_int8"},
                    "auto: as the checkpoint says; experts_int8: made while loading");
}

void AddModelNumbers(Command& command, WorkerOptions& worker) {
  AddTypes(command, worker.dtype, worker.quantization);
  command
      .AddNumber("--cpu-threads", worker.cpu_threads,
                 "Compute threads of the whole group; 0: the cores")
      ->check(CLI::Range(0, 4096));
  command
      .AddNumber("--lightning-norm-eps", worker.lightning_norm_eps,
                 "eps of the lightning layers' inner norm")
      ->check(CLI::PositiveNumber);
  command.AddChoice("--device", worker.device, {"auto", "cpu"}, "Compute device");
}

void AddCache(Command& command, WorkerOptions& worker) {
  command.AddBytes("--cache-bytes", worker.cache_bytes,
                   "State and KV of the whole group (8GiB accepted); 0: a quarter of the free "
                   "memory, at most 8 GiB");
  command
      .AddNumber("--max-num-seqs,--max-running-requests", worker.max_num_seqs,
                 "Sequences that run at once")
      ->check(CLI::Range(1, 65536));
  command
      .AddNumber("--max-num-batched-tokens,--chunked-prefill-size", worker.max_num_batched_tokens,
                 "Tokens of one step, at most")
      ->check(CLI::Range(64, 1 << 20));
}

void AddRouter(Command& command, RouterOptions& router) {
  command.AddList("--served-model-name", router.served_model_names,
                  "Names clients may use (repeatable)");
  command.Add("--host", router.host, "Address to listen on");
  command.AddNumber("--port", router.port, "HTTP port; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command.AddList("--api-key", router.api_keys,
                  "Key that clients must send (repeatable; or LEVIN_API_KEY)");
  command.AddCount("--default-max-tokens", router.default_max_tokens,
                   "Output limit where the request names none; 0: by model family");
  command.AddCount("--max-output-tokens", router.max_output_tokens, "Cap of max_tokens; 0: none");
  command.AddCount("--max-queued-requests", router.max_queued_requests, "429 beyond");
  command.AddTime("--request-timeout", router.request_timeout_ms,
                  "Time limit of a request; 0: none");
  command.AddTime("--shutdown-timeout", router.shutdown_timeout_ms, "How long a drain may take");
  command.AddTime("--sse-ping-interval", router.sse_ping_interval_ms,
                  "Comment lines in silent streams; 0: off");
  command.AddNumber("--max-logprobs", router.max_logprobs, "Largest top_logprobs")
      ->check(CLI::Range(0, 1024));
  command.AddChoice("--chat-template", router.chat_template,
                    {"auto", "minimax-m1", "minimax-m1-tools", "minimax-text-01"},
                    "Built-in renderer");
  command.AddChoice("--reasoning-parser", router.reasoning_parser, {"none", "auto", "minimax_m1"},
                    "Separate the think block from the answer");
}

// "off" or a port.
CLI::Option* AddGrpcPort(Command& command, std::string& text) {
  return command.Add("--grpc-port", text, "gRPC port; 0: any free one; off: none");
}

Result<int> PortOrOff(const std::string& text, const char* flag) {
  if (text == "off") return -1;
  int port = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 0 || port > 65535) {
    return Error(InvalidArgument(std::string(flag) + ": '" + text +
                                 "' is neither a port (0 to 65535) nor 'off'"));
  }
  return port;
}

Status RequireModel(const std::string& model) {
  if (model.empty()) return InvalidArgument("no model given, expected a folder with config.json");
  return Status::Ok();
}

// MODEL and --model are two ways to say it.
Status OneModel(const std::string& positional, std::string& model) {
  if (!positional.empty() && !model.empty() && positional != model) {
    return InvalidArgument("two models given: '" + positional + "' and --model '" + model + "'");
  }
  if (model.empty()) model = positional;
  return RequireModel(model);
}

void ResolveAuto(WorkerOptions& worker) {
  if (worker.dtype == "auto") worker.dtype = "bfloat16";
  if (worker.device == "auto") worker.device = "cpu";
}

// LEVIN_API_KEY_FILE: a secret from a file, one key a line.
Status ReadKeyFile(std::vector<std::string>& keys) {
  const char* path = std::getenv("LEVIN_API_KEY_FILE");
  if (path == nullptr || *path == '\0') return Status::Ok();
  std::ifstream file(path);
  if (!file) return InvalidArgument(std::string("LEVIN_API_KEY_FILE: cannot read '") + path + "'");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) keys.push_back(line);
  }
  return Status::Ok();
}

}  // namespace

Result<int64_t> ParseCount(const std::string& text) {
  return ParseWithUnits(text, kCountUnits, "a count such as 4096, 256k or 1M");
}

Result<int64_t> ParseBytes(const std::string& text) {
  return ParseWithUnits(text, kByteUnits, "bytes such as 4096, 512MiB or 8GB");
}

Result<int64_t> ParseTimeMs(const std::string& text) {
  return ParseWithUnits(text, kTimeUnits, "a time such as 90, 90s, 500ms or 5m");
}

Result<Parsed<WorkerOptions>> ParseWorkerOptions(int argc, const char* const* argv) {
  Parsed<WorkerOptions> parsed;
  WorkerOptions& worker = parsed.options;
  Command command("levin-worker",
                  "One rank of a worker group: its device, its shard of the model.");
  command.Add("--model", worker.model, "Folder with config.json and safetensors");
  command.AddNumber("--rank", worker.rank, "This process's rank; 0 leads")
      ->check(CLI::Range(0, 1023));
  command.AddNumber("--world-size", worker.world_size, "Ranks of the group")
      ->check(CLI::Range(1, 1024));
  command.Add("--leader", worker.leader,
              "The leader's Group address, HOST:PORT or unix:PATH (ranks above 0)");
  command.Add("--engine-listen", worker.engine_listen, "Leader: address of the Engine service");
  command.Add("--group-listen", worker.group_listen, "Leader: address of the Group service");
  command.Add("--metrics-host", worker.metrics_host, "Address of health and metrics");
  std::string metrics_port = "off";
  command.Add("--metrics-port", metrics_port,
              "Port of health and metrics; 0: any free one; off: none");
  command.Add("--epoch-file", worker.epoch_file, "Where the leader keeps its epoch over restarts");
  command.AddCount("--max-model-len,--context-length", worker.max_model_len,
                   "Longest sequence; 0: what the cache holds");
  command.Add("--eval-job", worker.eval_job, "Job of levin eval: generations come from this file");
  command
      .AddNumber("--test-corrupt-rank", worker.corrupt_rank,
                 "Test hook: this rank damages a weight in memory")
      ->group("");
  AddModelNumbers(command, worker);
  AddCache(command, worker);
  AddLog(command, worker.log);
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(worker.model));
  if (worker.rank >= worker.world_size) {
    return Error(InvalidArgument("--rank is " + std::to_string(worker.rank) +
                                 ", expected less than --world-size " +
                                 std::to_string(worker.world_size)));
  }
  if (worker.rank > 0 && worker.leader.empty()) {
    return Error(InvalidArgument("--leader is missing: rank " + std::to_string(worker.rank) +
                                 " needs the leader's address"));
  }
  ASSIGN_OR_RETURN(worker.metrics_port, PortOrOff(metrics_port, "--metrics-port"));
  ResolveAuto(worker);
  return parsed;
}

Result<Parsed<RouterOptions>> ParseRouterOptions(int argc, const char* const* argv) {
  Parsed<RouterOptions> parsed;
  RouterOptions& router = parsed.options;
  Command command("levin-router", "HTTP and gRPC for clients; forwards to worker groups.");
  command.Add("--model,--tokenizer", router.model, "Folder with config.json and tokenizer.json");
  command.AddList("--group,--engine", router.groups,
                  "Engine address of a worker group (repeatable)");
  command.AddCount("--max-model-len,--context-length", router.max_model_len,
                   "Longest sequence; 0: the group's");
  std::string grpc_port = "50051";
  AddGrpcPort(command, grpc_port);
  command.Add("--grpc-host", router.grpc_host, "gRPC address; empty: as --host");
  command.Add("--dtype", router.dtype, "What the group computes in (for GetModel)");
  command.Add("--quantization,-q", router.quantization,
              "How the group's experts are stored (for GetModel)");
  AddRouter(command, router);
  AddLog(command, router.log);
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(router.model));
  if (router.groups.empty()) {
    return Error(
        InvalidArgument("--group is missing: expected the Engine address of a worker group"));
  }
  ASSIGN_OR_RETURN(router.grpc_port, PortOrOff(grpc_port, "--grpc-port"));
  RETURN_ERROR_IF(ReadKeyFile(router.api_keys));
  return parsed;
}

Result<Parsed<ServeOptions>> ParseServeOptions(int argc, const char* const* argv) {
  Parsed<ServeOptions> parsed;
  WorkerOptions& worker = parsed.options.worker;
  RouterOptions& router = parsed.options.router;
  Command command("levin serve",
                  "Serve a model on this host: one router and a tensor-parallel worker group.");
  std::string positional;
  command.AddPositional("MODEL", positional,
                        "Folder with config.json, tokenizer.json and safetensors");
  command.Add("--model,--model-path", worker.model, "The same as a flag");
  command.AddNumber("--tensor-parallel-size,--tp", worker.world_size, "Ranks of the group")
      ->check(CLI::Range(1, 1024));
  command.AddCount("--max-model-len,--context-length", worker.max_model_len,
                   "Longest sequence; 0: what the cache holds for one request");
  std::string grpc_port = "50051";
  AddGrpcPort(command, grpc_port);
  AddModelNumbers(command, worker);
  AddCache(command, worker);
  AddRouter(command, router);
  AddLog(command, worker.log);
  command.AddIgnored();
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(OneModel(positional, worker.model));
  ASSIGN_OR_RETURN(router.grpc_port, PortOrOff(grpc_port, "--grpc-port"));
  RETURN_ERROR_IF(ReadKeyFile(router.api_keys));
  ResolveAuto(worker);
  router.model = worker.model;
  router.max_model_len = worker.max_model_len;
  router.dtype = worker.dtype;
  router.quantization = worker.quantization;
  router.log = worker.log;
  return parsed;
}

Result<Parsed<EvalOptions>> ParseEvalOptions(int argc, const char* const* argv) {
  Parsed<EvalOptions> parsed;
  EvalOptions& eval = parsed.options;
  Command command(
      "levin eval",
      "Known values of a checkpoint: logits, greedy tokens, states and traces of given ids.");
  command.AddPositional("MODEL", eval.worker.model, "Folder with config.json and safetensors");
  command.Add("--ids", eval.ids_file, "JSON file: {\"name\": [ids...], ...}");
  command.Add("--out", eval.out_file,
              "Safetensors file to write: NAME.logits [positions, vocabulary] and more");
  command
      .AddNumber("--greedy", eval.greedy,
                 "Also this many greedy tokens (NAME.greedy); the end token ends nothing")
      ->check(CLI::Range(0, 1 << 20));
  command.AddFlag("--states", eval.states, "Also NAME.state.LAYER after the last id");
  command.AddFlag("--trace", eval.trace, "Also NAME.trace.WHAT of every position");
  command.AddFlag("--batch", eval.batch, "All names as one batch, else one after the other");
  command
      .AddNumber("--chunk-tokens", eval.chunk_tokens,
                 "Feed prompts in chunks of so many; 1: the one-token form")
      ->check(CLI::Range(1, 1 << 20));
  command.AddNumber("--tensor-parallel-size,--tp", eval.worker.world_size, "Ranks of the group")
      ->check(CLI::Range(1, 1024));
  command
      .AddNumber("--test-corrupt-rank", eval.worker.corrupt_rank,
                 "Test hook: this rank damages a weight in memory")
      ->group("");
  AddModelNumbers(command, eval.worker);
  AddCache(command, eval.worker);
  AddLog(command, eval.worker.log);
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(eval.worker.model));
  if (eval.ids_file.empty())
    return Error(InvalidArgument("--ids is missing: expected a JSON file of prompts"));
  if (eval.out_file.empty())
    return Error(InvalidArgument("--out is missing: expected the file to write"));
  ResolveAuto(eval.worker);
  return parsed;
}

Result<Parsed<BenchOptions>> ParseBenchOptions(int argc, const char* const* argv) {
  Parsed<BenchOptions> parsed;
  BenchOptions& bench = parsed.options;
  WorkerOptions& worker = bench.worker;
  Command command("levin bench",
                  "Tokens per second of the engine; the last line is a JSON object.");
  command.Add("--engine,--model", worker.model, "Folder with config.json and safetensors");
  command.AddNumber("--prompt", bench.prompt, "Tokens to prefill")->check(CLI::Range(0, 1 << 24));
  command
      .AddNumber("--gen", bench.gen, "Tokens to generate; above 0 these are timed, else the prompt")
      ->check(CLI::Range(0, 1 << 24));
  command.AddNumber("--depth", bench.depth, "Tokens in every sequence before the clock starts")
      ->check(CLI::Range(0, 1 << 24));
  command.AddNumber("--batch", bench.batch, "Sequences at once")->check(CLI::Range(1, 4096));
  command.AddNumber("--rounds", bench.rounds, "Timed repetitions; the best counts")
      ->check(CLI::Range(1, 1000));
  command.AddNumber("--tensor-parallel-size,--tp", worker.world_size, "Ranks of the group")
      ->check(CLI::Range(1, 1024));
  command.AddNumber("--threads", worker.cpu_threads, "The same as --cpu-threads")
      ->check(CLI::Range(0, 4096));
  AddModelNumbers(command, worker);
  AddCache(command, worker);
  AddLog(command, worker.log);
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(worker.model));
  if (bench.prompt == 0 && bench.gen == 0) {
    return Error(InvalidArgument("--prompt and --gen are both 0: nothing to time"));
  }
  ResolveAuto(worker);
  return parsed;
}

Result<Parsed<PlanOptions>> ParsePlanOptions(int argc, const char* const* argv) {
  Parsed<PlanOptions> parsed;
  PlanOptions& plan = parsed.options;
  Command command("levin plan",
                  "What a model needs and what fits beside it; checks the folder, loads nothing.");
  std::string positional;
  command.AddPositional("MODEL", positional,
                        "Folder with config.json; index and safetensors are checked when there");
  command.Add("--model,--model-path", plan.model, "The same as a flag");
  command
      .AddNumber("--tensor-parallel-size,--tp", plan.world_size,
                 "Ranks of the group, one device each")
      ->check(CLI::Range(1, 1024));
  AddTypes(command, plan.dtype, plan.quantization);
  command.AddBytes("--device-memory", plan.device_bytes, "Memory of one device (80GB, 96GiB)");
  command.AddNumber("--gpu-memory-utilization,--mem-fraction-static", plan.gpu_memory_utilization,
                    "The part of it that may be used, above 0 and at most 1");
  command.AddBytes(
      "--overhead-bytes", plan.overhead_bytes,
      "Everything else on a device: workspace, communication, context; unless given, 5.2GB, "
      "which the published contexts imply");
  command.AddCount("--max-model-len,--context-length", plan.max_model_len,
                   "Longest sequence that must fit; 0: the longest that is worth offering");
  command
      .AddNumber("--max-num-seqs,--max-running-requests", plan.max_num_seqs,
                 "Sequences that run at once")
      ->check(CLI::Range(1, 65536));
  command.AddFlag("--json", plan.json, "The plan as one JSON object");
  command.AddIgnored();
  RETURN_ERROR_IF(command.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(OneModel(positional, plan.model));
  if (plan.device_bytes == 0) {
    return Error(InvalidArgument(
        "--device-memory is missing: expected the bytes of one device, such as 80GB"));
  }
  if (!(plan.gpu_memory_utilization > 0 && plan.gpu_memory_utilization <= 1)) {
    return Error(InvalidArgument("--gpu-memory-utilization is " +
                                 std::to_string(plan.gpu_memory_utilization) +
                                 ", expected above 0 and at most 1"));
  }
  if (plan.dtype == "auto") plan.dtype = "bfloat16";
  return parsed;
}

}  // namespace levin
