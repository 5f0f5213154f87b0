#include "worker/bench/kernel_case.h"
#include "worker/bench/random_tensor.h"

namespace levin {
namespace {

constexpr int64_t kWidth = 6144, kTokens = 2048;

void RmsNormCase(Backend& backend, DType act, const CaseSink& sink) {
  const OwnedTensor residual = RandomTensor(DType::kF32, {kTokens, kWidth});
  const OwnedTensor update = RandomTensor(DType::kF32, {kTokens, kWidth});
  const OwnedTensor weight = RandomTensor(DType::kF32, {kWidth});
  const OwnedTensor rounded = EmptyTensor(act, {kTokens, kWidth});
  const TensorView normed = residual.view;
  const TensorView out = act == DType::kF32 ? normed : rounded.view;
  // Residual and update read, the norm written over the residual, and its rounding.
  const double bytes = static_cast<double>(3 * residual.view.bytes()) +
                       (act == DType::kF32 ? 0.0 : static_cast<double>(out.bytes()));
  sink({"RmsNorm", std::to_string(kWidth), "-", ActivationName(act), kTokens, RoofKind::kRewrite,
        bytes, 0, [&] {
          backend.kernels().RmsNorm(
              {residual.view, update.view, 0.5f, 0.5f, weight.view, 1e-5f, {}, normed, out});
        }});
}

void GateNormCase(Backend& backend, DType act, const CaseSink& sink) {
  const OwnedTensor x = RandomTensor(DType::kF32, {kTokens, kWidth});
  const OwnedTensor gate = RandomTensor(DType::kF32, {kTokens, kWidth});
  const OwnedTensor squares = RandomTensor(DType::kF32, {kTokens});
  const OwnedTensor weight = RandomTensor(DType::kF32, {kWidth});
  const OwnedTensor out = EmptyTensor(act, {kTokens, kWidth});
  for (int64_t t = 0; t < kTokens; ++t) squares.view.as<float>()[t] = kWidth;
  // The gate is overwritten on the way: it stays in the cache and comes out of it once.
  const double bytes = static_cast<double>(3 * x.view.bytes() + out.view.bytes());
  sink({"GateNorm", std::to_string(kWidth), "-", ActivationName(act), kTokens, RoofKind::kRewrite,
        bytes, 0, [&] {
          backend.kernels().GateNorm(
              {x.view, gate.view, squares.view, kWidth, weight.view, 1e-6f, out.view});
        }});
}

}  // namespace

void NormCases(Backend& backend, const CaseSink& sink) {
  for (const DType act : {DType::kF32, DType::kBF16}) {
    RmsNormCase(backend, act, sink);
    GateNormCase(backend, act, sink);
  }
}

}  // namespace levin
