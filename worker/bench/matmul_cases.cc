#include "worker/bench/kernel_case.h"
#include "worker/bench/random_tensor.h"

namespace levin {
namespace {

struct MatrixShape {
  int64_t in, out;
};
// An expert of MiniMax-M1 on one of eight ranks, forth and back, a projection, and two of a model
// of hidden size 1024.
constexpr MatrixShape kShapes[] = {
    {6144, 1152}, {1152, 6144}, {6144, 1536}, {1024, 1536}, {1536, 1024}};
constexpr int64_t kTokens[] = {1, 2, 4, 8, 64, 512};
// From here on arithmetic is the limit, not memory.
constexpr int64_t kManyTokens = 64;

void OneShape(Backend& backend, const MatrixShape& shape, DType weights, const CaseSink& sink) {
  const RandomMatrices all = MakeMatrices(backend, weights, shape.out, shape.in, kBeyondCaches, 1);
  for (const DType act : {DType::kF32, DType::kBF16}) {
    for (const int64_t tokens : kTokens) {
      const OwnedTensor x = RandomTensor(act, {tokens, shape.in});
      const OwnedTensor out = EmptyTensor(DType::kF32, {tokens, shape.out});
      const bool many = tokens >= kManyTokens;
      // Few tokens: once through all matrices, so that each comes from memory.
      const size_t matrices = many ? 1 : all.matrices.size();
      const double elements = static_cast<double>(shape.in * shape.out * matrices);
      size_t next = 0;
      sink({"MatMul", std::to_string(shape.in) + " to " + std::to_string(shape.out),
            WeightName(weights), ActivationName(act), tokens, RoofKind::kRead,
            elements * static_cast<double>(ByteSize(weights)),
            elements * 2.0 * static_cast<double>(tokens), [&] {
              for (size_t i = 0; i < matrices; ++i) {
                next = (next + 1) % all.matrices.size();
                backend.kernels().MatMul({x.view, &all.matrices[next], out.view});
              }
            }});
    }
  }
}

}  // namespace

void MatMulCases(Backend& backend, const CaseSink& sink) {
  for (const MatrixShape& shape : kShapes) {
    for (const DType weights : {DType::kBF16, DType::kI8}) OneShape(backend, shape, weights, sink);
  }
}

}  // namespace levin
