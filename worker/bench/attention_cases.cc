#include <algorithm>
#include <array>
#include <cmath>

#include "worker/bench/kernel_case.h"
#include "worker/bench/random_tensor.h"
#include "worker/bench/step_rows.h"

namespace levin {
namespace {

// One rank's share of MiniMax-M1 on eight: 8 heads of 128, one KV head.
constexpr int64_t kHeads = 8, kDim = 128;

std::array<double, kHeads> Slopes() {
  std::array<double, kHeads> slopes;
  for (int64_t h = 0; h < kHeads; ++h) slopes[h] = std::exp2(-static_cast<double>(h + 1));
  return slopes;
}

void LightningDecode(Backend& backend, const CaseSink& sink) {
  constexpr int64_t kStateBytes = kHeads * kDim * kDim * 4;
  constexpr int64_t kSequences = 64, kLayers = kBeyondCaches / kStateBytes / kSequences + 1;
  const OwnedTensor states = RandomTensor(DType::kF32, {kSequences, kLayers, kHeads, kDim * kDim});
  const OwnedTensor qkv = RandomTensor(DType::kF32, {kSequences, kHeads, 3 * kDim});
  const OwnedTensor out = EmptyTensor(DType::kF32, {kSequences, kHeads, kDim});
  const auto slopes = Slopes();
  StepRows rows;
  for (int32_t s = 0; s < kSequences; ++s) rows.Add(1000, 1, s, true);
  sink({"LightningAttention decode", "8 heads of 128", "fp32 state", "float32", kSequences,
        RoofKind::kRewrite, 2.0 * kStateBytes * kSequences * kLayers, 0, [&] {
          for (int layer = 0; layer < kLayers; ++layer) {
            backend.kernels().LightningAttention(
                {qkv.view, rows.table(), states.view, layer, slopes, out.view});
          }
        }});
}

void LightningPrefill(Backend& backend, const CaseSink& sink) {
  constexpr int64_t kTokens = 2048, kBlock = 64;
  const OwnedTensor states = EmptyTensor(DType::kF32, {1, 1, kHeads, kDim * kDim});
  const OwnedTensor qkv = RandomTensor(DType::kF32, {kTokens, kHeads, 3 * kDim});
  const OwnedTensor out = EmptyTensor(DType::kF32, {kTokens, kHeads, kDim});
  const auto slopes = Slopes();
  StepRows rows;
  rows.Add(0, kTokens, 0, false);
  // q S, q k, scores v, k v: the half of the scores that the mask hides is not counted.
  constexpr double kPerToken = 2.0 * kHeads * (2 * kDim * kDim + 2 * kDim * (kBlock + 1) / 2);
  sink({"LightningAttention prefill", "8 heads of 128", "fp32 state", "float32", kTokens,
        RoofKind::kRead, 0, kPerToken * kTokens, [&] {
          backend.kernels().LightningAttention(
              {qkv.view, rows.table(), states.view, 0, slopes, out.view});
        }});
}

// `sequences` rows of `tokens` tokens that end at `context`.
void Softmax(Backend& backend, const char* kernel, DType cached, DType act, int64_t sequences,
             int64_t context, int64_t tokens, const CaseSink& sink) {
  const int64_t blocks = context / kKvBlockTokens;
  const OwnedTensor cache = RandomTensor(cached, {sequences * blocks, 2, 1, kKvBlockTokens * kDim});
  const OwnedTensor query = RandomTensor(DType::kF32, {sequences * tokens, kHeads, kDim});
  const OwnedTensor out = EmptyTensor(act, {sequences * tokens, kHeads, kDim});
  const OwnedTensor pieces = EmptyTensor(DType::kI32, {sequences * tokens});
  StepRows rows;
  for (int32_t s = 0; s < sequences; ++s) {
    rows.Add(context - tokens, tokens, s, tokens == 1, s * static_cast<int32_t>(blocks));
  }
  // Keys seen by the tokens of a row, the mask's half of the row itself left out.
  const double seen =
      static_cast<double>(tokens) * static_cast<double>(2 * context - tokens + 1) / 2;
  // What a row reads of its context, once: pieces of a prompt read it again, from caches.
  const double bytes = tokens == 1 ? static_cast<double>(cache.view.bytes()) : 0;
  const double operations = static_cast<double>(sequences) * seen * 4.0 * kHeads * kDim;
  sink({kernel, "8 heads of 128, 1 KV head", WeightName(cached), ActivationName(act), context,
        RoofKind::kRead, bytes, operations, [&] {
          backend.kernels().PagedAttention(
              {query.view, rows.table(), cache.view, 0, 1, pieces.view, out.view});
        }});
}

}  // namespace

void LightningCases(Backend& backend, const CaseSink& sink) {
  LightningDecode(backend, sink);
  LightningPrefill(backend, sink);
}

void SoftmaxAttentionCases(Backend& backend, const CaseSink& sink) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    constexpr int64_t kContext = 32768;
    const int64_t sequences = kBeyondCaches / (kContext * kDim * 2 * ByteSize(type));
    Softmax(backend, "PagedAttention decode", type, type, sequences, kContext, 1, sink);
    Softmax(backend, "PagedAttention prefill", type, type, 1, 4096, 512, sink);
  }
}

}  // namespace levin
