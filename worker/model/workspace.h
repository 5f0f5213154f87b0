// Everything the forward pass writes between its inputs and outputs, for the largest step that may
// come. Taken once; a step uses the first T rows of each.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/model_config.h"
#include "worker/backend/backend.h"

namespace levin {

// act: f32 or bf16. h, g: this rank's heads and KV heads, I: its part of the expert width.
struct Workspace {
  Workspace(const ModelConfig& config, int ranks, DType act, int64_t tokens_max, Backend& backend);

  TensorView normed;  // [T, H] f32: the normalised input of the next sub-block
  TensorView y;       // [T, H] act: the same, rounded; `normed` itself where act is f32
  TensorView sum;     // [T, H] f32: the residual sum, where somebody needs it
  TensorView update;  // [T, H] f32: what a sub-block adds

  TensorView qkv;           // [T, h, 3 * d] f32
  TensorView heads;         // [T, h, d] f32: lightning output, or softmax queries
  TensorView gate;          // [T, h * d] f32
  TensorView mixed;         // [T, h * d] act: input of the output projection
  TensorView sum_squares;   // [T] f32
  TensorView keys, values;  // [T, g, d] f32
  TensorView pieces;        // [T] i32: scratch of attention

  TensorView router_logits;   // [T, E] f32
  TensorView experts;         // [T, k] i32
  TensorView expert_weights;  // [T, k] f32
  TensorView expert_hidden;   // [T * k, I] act
  TensorView expert_order;    // [2 * T * k + E + 1] i32

 private:
  TensorView Take(Backend& backend, DType dtype, const Shape& shape);
  std::vector<Buffer> buffers_;
};

}  // namespace levin
