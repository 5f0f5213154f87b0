#include "cli/plan_report.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cstdio>
#include <string_view>

namespace levin {
namespace {

namespace json = boost::json;
using Source = CheckpointFacts::Source;

struct Kind {
  const char* name;
  int64_t WeightBytes::*bytes;
};
constexpr Kind kKinds[] = {
    {"experts", &WeightBytes::experts},     {"scales", &WeightBytes::scales},
    {"attention", &WeightBytes::attention}, {"embedding", &WeightBytes::embedding},
    {"head", &WeightBytes::head},           {"gates", &WeightBytes::gates},
    {"norms", &WeightBytes::norms},
};

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 512> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string Grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (auto i = static_cast<ptrdiff_t>(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    text.insert(static_cast<size_t>(i), ",");
  }
  return text;
}

std::string Gigabytes(int64_t bytes) { return Format("%.2f GB", static_cast<double>(bytes) / 1e9); }

std::string Line(const char* what, int64_t bytes) {
  return Format("  %-34s %10.3f %10.3f %18s\n", what, static_cast<double>(bytes) / 1e9,
                static_cast<double>(bytes) / (1 << 30), Grouped(bytes).c_str());
}

const char* QuantizationName(ExpertFormat experts) {
  return experts == ExpertFormat::kInt8 ? "experts_int8" : "none";
}

// ---- text

std::string NetworkText(const ModelPlan& plan) {
  const ModelConfig& config = plan.config;
  return Format("%s: %d layers (%d lightning, %d softmax), %d experts, vocabulary %d\n",
                config.architecture.c_str(), config.layers, config.lightning_layers(),
                config.softmax_layers(), config.experts, config.vocab);
}

std::string SourceText(const CheckpointFacts& facts) {
  switch (facts.source) {
    case Source::kHeaders:
      return "all headers checked";
    case Source::kIndex:
      return "named by the index, whose files are not here";
    case Source::kConfig:
      return "expected by config.json: the folder has neither index nor weights";
  }
  return "?";
}

std::string TotalText(const CheckpointFacts& facts) {
  if (!facts.index_bytes) return "";
  if (*facts.index_bytes == facts.bytes) return ", as the index says";
  return "; the index says " + Grouped(*facts.index_bytes) + ", a difference of " +
         Grouped(*facts.index_bytes - facts.bytes) +
         (facts.bytes_are_known ? "" : " (counted with gates as F32 and norms as BF16)");
}

std::string CheckpointText(const CheckpointFacts& facts) {
  const std::string files = facts.files == 0 ? "" : " in " + std::to_string(facts.files) + " files";
  return "checkpoint: " + std::to_string(facts.tensors) + " tensors" + files + " (" +
         SourceText(facts) + "), " + Grouped(facts.bytes) + " bytes" + TotalText(facts) + "\n";
}

std::string RankText(const ModelPlan& plan) {
  const MemoryPlan& memory = plan.memory;
  std::string text =
      Format("\n%-36s %10s %10s %18s\n",
             Format("each of %d ranks", plan.options.world_size).c_str(), "GB", "GiB", "bytes");
  for (const Kind& kind : kKinds) {
    if (memory.weights.*kind.bytes != 0) text += Line(kind.name, memory.weights.*kind.bytes);
  }
  text += Line("weights together", memory.weights.total());
  text += Line("overhead (assumed: --overhead-bytes)", memory.overhead_bytes);
  text += memory.cache_bytes < 0 ? Line("missing", -memory.cache_bytes)
                                 : Line("left for the cache", memory.cache_bytes);
  text += Line(Format("%g of %s", plan.options.gpu_memory_utilization,
                      Gigabytes(plan.options.device_bytes).c_str())
                   .c_str(),
               memory.budget_bytes);
  return text;
}

std::string CostText(const ModelPlan& plan) {
  const CacheGeometry& geometry = plan.memory.geometry;
  std::string text = "\none sequence on a rank: state " + Grouped(geometry.state_bytes_per_slot) +
                     " bytes whatever its length";
  if (geometry.kv_bytes_per_block > 0) {
    text += ", keys and values " + Grouped(geometry.kv_bytes_per_block / geometry.block_tokens) +
            " bytes a token in blocks of " + std::to_string(geometry.block_tokens) +
            "; a state is " +
            Grouped(geometry.state_bytes_per_slot * geometry.block_tokens /
                    geometry.kv_bytes_per_block) +
            " tokens' worth";
  }
  return text + "\nlongest sequence alone: " + Grouped(plan.memory.longest_tokens) + " tokens\n";
}

std::string Cell(int64_t sequences, bool allowed) {
  return Format("%9s", allowed ? Grouped(sequences).c_str() : "-");
}

// Why the longest accepted sequence is shorter than the longest that fits.
const char* AskedText(bool asked) {
  return asked ? "" : " (half of the cache, at most the trained window)";
}

std::string ContextText(const MemoryPlan& memory, int64_t positions, bool asked) {
  std::string head = "\nsequences at once of              ";
  std::string bytes = "  whatever the split              ";
  std::string split = "  as split by the flags below     ";
  for (const MemoryPlan::Context& context : memory.contexts) {
    const int64_t k = context.tokens >> 10;
    head += Format("%9s", (k >= 1024 ? "1M" : std::to_string(k) + "k").c_str());
    bytes += Cell(context.sequences, context.tokens <= positions);
    split += Cell(context.sequences_as_split, context.tokens <= memory.max_model_len);
  }
  return head + "\n" + bytes + "\n" + split + "\n" +
         Format("  %s slots, %s blocks; accepted: sequences of up to %s tokens%s; -: longer\n",
                Grouped(memory.split.slots).c_str(), Grouped(memory.split.blocks).c_str(),
                Grouped(memory.max_model_len).c_str(), AskedText(asked));
}

std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// ---- JSON

json::object CheckpointJson(const CheckpointFacts& facts) {
  constexpr const char* kSources[] = {"headers", "index", "config"};
  json::object object = {{"source", kSources[static_cast<size_t>(facts.source)]},
                         {"tensors", facts.tensors},
                         {"files", facts.files},
                         {"bytes", facts.bytes},
                         {"index_bytes", nullptr},
                         {"index_agrees", nullptr}};
  if (facts.index_bytes) {
    object["index_bytes"] = *facts.index_bytes;
    object["index_agrees"] = *facts.index_bytes == facts.bytes;
  }
  return object;
}

json::object RankJson(const MemoryPlan& memory) {
  json::object weights;
  for (const Kind& kind : kKinds) weights[kind.name] = memory.weights.*kind.bytes;
  weights["total"] = memory.weights.total();
  const CacheGeometry& geometry = memory.geometry;
  return {{"weights_bytes", std::move(weights)},
          {"overhead_bytes", memory.overhead_bytes},
          {"cache_bytes", memory.cache_bytes},
          {"budget_bytes", memory.budget_bytes},
          {"needed_bytes", memory.needed_bytes},
          {"state_bytes_per_sequence", geometry.state_bytes_per_slot},
          {"kv_bytes_per_token", geometry.kv_bytes_per_block / geometry.block_tokens},
          {"kv_bytes_per_block", geometry.kv_bytes_per_block},
          {"block_tokens", geometry.block_tokens},
          {"slots", memory.split.slots},
          {"blocks", memory.split.blocks}};
}

}  // namespace

std::string PlanText(const ModelPlan& plan) {
  std::string text =
      NetworkText(plan) + CheckpointText(plan.checkpoint) + RankText(plan) + CostText(plan);
  if (!plan.memory.fits) return text;
  text += ContextText(plan.memory, plan.config.max_positions, plan.options.max_model_len > 0) +
          "\nlevin serve " + Quoted(plan.options.model);
  for (const std::string& flag : plan.flags) text += " " + Quoted(flag);
  return text + "\n";
}

std::string PlanJson(const ModelPlan& plan) {
  json::array contexts;
  for (const MemoryPlan::Context& context : plan.memory.contexts) {
    contexts.push_back({{"tokens", context.tokens},
                        {"sequences", context.sequences},
                        {"sequences_as_split", context.sequences_as_split}});
  }
  json::array remedies;
  for (const Remedy& remedy : plan.remedies) {
    remedies.push_back({{"flags", remedy.flags}, {"needed_bytes", remedy.needed_bytes}});
  }
  const json::object object = {{"model", plan.options.model},
                               {"architecture", plan.config.architecture},
                               {"fits", plan.memory.fits},
                               {"tensor_parallel_size", plan.options.world_size},
                               {"quantization", QuantizationName(plan.experts)},
                               {"dtype", plan.options.dtype},
                               {"device_bytes", plan.options.device_bytes},
                               {"gpu_memory_utilization", plan.options.gpu_memory_utilization},
                               {"checkpoint", CheckpointJson(plan.checkpoint)},
                               {"per_rank", RankJson(plan.memory)},
                               {"longest_sequence_tokens", plan.memory.longest_tokens},
                               {"max_model_len", plan.memory.max_model_len},
                               {"contexts", std::move(contexts)},
                               {"flags", json::value_from(plan.flags)},
                               {"would_fit", std::move(remedies)}};
  return json::serialize(object) + "\n";
}

std::string MisfitText(const ModelPlan& plan) {
  const MemoryPlan& memory = plan.memory;
  const std::string sequence =
      plan.options.max_model_len > 0
          ? "one sequence of " + Grouped(plan.options.max_model_len) + " tokens"
          : "one short sequence";
  std::string text =
      "does not fit: each of " + std::to_string(plan.options.world_size) + " ranks needs " +
      Gigabytes(memory.needed_bytes) + " (weights " + Gigabytes(memory.weights.total()) +
      ", overhead " + Gigabytes(memory.overhead_bytes) + ", " + sequence + " " +
      Gigabytes(memory.needed_bytes - memory.weights.total() - memory.overhead_bytes) + "), but " +
      Format("%g", plan.options.gpu_memory_utilization) + " of " +
      Gigabytes(plan.options.device_bytes) + " are " + Gigabytes(memory.budget_bytes) +
      "; would fit: ";
  for (size_t i = 0; i < plan.remedies.size(); ++i) {
    text += (i ? ", or " : "") + plan.remedies[i].flags + " (" +
            Gigabytes(plan.remedies[i].needed_bytes) + ")";
  }
  return text;
}

}  // namespace levin
