// Temperature and the three filters of api.md 10.2, in vLLM V1's order: what may still be drawn
// from one row, and with which weight. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/types.h"
#include "common/inference/sampling_params.h"

namespace levin {

struct Candidate {
  TokenId token = 0;
  float scaled = 0;  // logit / temperature
};

// Temperatures below 1e-5 are greedy and never come here; those up to 0.01 count as 0.01.
float EffectiveTemperature(float temperature);

// All tokens of `row` that are not masked, ascending by id, divided by the temperature.
std::vector<Candidate> Scale(std::span<const float> row, float temperature);

// Each keeps the order of what stays, and always the best. The input is not empty.
// min_p: p_i >= min_p * p_max.
void KeepMinP(float min_p, std::vector<Candidate>& candidates);
// Logits >= the k-th largest: equal ones may make it more than k. k = 0: all.
void KeepTopK(int32_t k, std::vector<Candidate>& candidates);
// The smallest set, best first, whose mass among the candidates is >= p; of equal ones the lowest
// id first. p = 1: all.
void KeepTopP(float p, std::vector<Candidate>& candidates);

}  // namespace levin
