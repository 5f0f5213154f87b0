// What `levin eval --compare` says: layer by layer, how far the values of a run are from those of a
// reference file, and where they first part. Files are of the form that `levin eval` writes
// (README of tests/golden/network). Reads, decides nothing about the run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/weights/safetensors.h"

namespace levin {

struct ValueDifference {
  std::string prompt;
  std::string what;       // "after_attention", "router_logits", "experts", "after_mlp", "state",
                          // "final_norm", "logits", "greedy"
  int32_t layer = -1;     // -1: of no layer
  double absolute = 0;    // largest; of experts and greedy: how many ids differ
  double relative = 0;    // over the largest value of the reference
  int64_t first_row = 0;  // position of the reference's first row that is outside; -1: none is
};

struct EvalComparison {
  std::vector<ValueDifference> values;  // of a prompt in the order in which the network makes them
  std::vector<std::string> unmatched;   // of the reference: names that the run did not write
};

// Every tensor of `reference` that belongs to one of `prompts`; a reference that holds fewer rows
// of logits holds the last ones. kInvalidArgument where shapes or types do not match, or nothing
// of the reference belongs to the prompts.
Result<EvalComparison> CompareEval(const SafetensorsFile& run, const SafetensorsFile& reference,
                                   std::span<const std::string> prompts, double tolerance);

// Ids must be equal, numbers within the tolerance of the largest one; NaN never is.
bool Within(const ValueDifference& value, double tolerance);

// A line per prompt and layer, and the first place outside the tolerance.
std::string ComparisonText(const EvalComparison& comparison, double tolerance);

}  // namespace levin
