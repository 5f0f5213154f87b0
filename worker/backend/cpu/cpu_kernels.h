// One method per op, each in its own file.
#pragma once

#include "worker/backend/cpu/cpu_backend.h"
#include "worker/backend/cpu/simd.h"
#include "worker/backend/cpu/thread_pool.h"
#include "worker/backend/kernels.h"

namespace levin {

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuOptions& options)
      : simd_(FindSimdOps(options.path, options.batch_invariant)), pool_(options.threads) {}

  void Embed(const EmbedArgs& args) override;
  void RmsNorm(const RmsNormArgs& args) override;
  void MatMul(const MatMulArgs& args) override;
  void Rope(const RopeArgs& args) override;
  void StoreKv(const StoreKvArgs& args) override;
  void PagedAttention(const PagedAttentionArgs& args) override;
  void LightningAttention(const LightningAttentionArgs& args) override;
  void SumSquares(const SumSquaresArgs& args) override;
  void GateNorm(const GateNormArgs& args) override;
  void RouteExperts(const RouteExpertsArgs& args) override;
  void ExpertMatMul(const ExpertMatMulArgs& args) override;
  void GatherRows(const GatherRowsArgs& args) override;

 private:
  const SimdOps* const simd_;  // null: the plain path
  ThreadPool pool_;
};

}  // namespace levin
