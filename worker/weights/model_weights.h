// One rank's share of the weights, ready for the kernels. Matrices are [out, in] row-major: y = Wx.
// Filled by LoadWeights (weight_loader.h), constant afterwards; any thread may read.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/tensor/tensor.h"

namespace levin {

enum class ExpertFormat : uint8_t { kBF16, kInt8 };

// A view is empty where the layer's kind, or the experts' format, has no such tensor.
// H = hidden, d = head_dim, h = this rank's heads, g = its KV heads (at least 1), E = experts,
// I = this rank's part of the expert width. bf16 unless said otherwise. Norm weights are float32
// whatever the file holds: widened once, exactly.
struct LayerWeights {
  TensorView input_norm, post_attention_norm;  // [H] f32

  // Lightning layers.
  TensorView qkv;             // [h * 3d, H]: per head d rows of q, d of k, d of v
  TensorView output_gate;     // [h * d, H]
  TensorView lightning_norm;  // [h * d] f32: this rank's part of a norm over all heads
  TensorView out;             // [H, h * d]

  // Softmax layers.
  TensorView q;     // [h * d, H]
  TensorView k, v;  // [g * d, H]
  TensorView o;     // [H, h * d]

  // Experts, every layer.
  TensorView gate;       // [E, H] f32; the whole of it on every rank
  TensorView w13;        // [E, 2I, H] bf16 or int8: rows of w1 (the activated branch), then of w3
  TensorView w2;         // [E, H, I] bf16 or int8
  TensorView w13_scale;  // [E, 2I] f32, int8 only: weight = scale * q
  TensorView w2_scale;   // [E, H] f32, int8 only; of the full row, the same on every rank
};

struct ModelWeights {
  int64_t vocab_first = 0;  // this rank's rows of embedding and head begin here
  TensorView embedding;     // [vocab_local, H]
  TensorView head;          // [vocab_local, H]; the embedding itself when they are tied
  TensorView final_norm;    // [H] f32
  std::vector<LayerWeights> layers;
  ExpertFormat expert_format = ExpertFormat::kBF16;

  uint64_t digest = 0;  // made with XXH3-64 over this rank's names, types, shapes and bytes
  int64_t bytes = 0;    // of all buffers

  std::vector<Buffer> buffers;  // what the views point into
};

}  // namespace levin
