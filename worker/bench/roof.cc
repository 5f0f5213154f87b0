#include "worker/bench/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace levin {
namespace {

using Clock = std::chrono::steady_clock;

// As the kernels' loops are cut: a thread that is held up is not waited for.
constexpr int64_t kPiecesPerThread = 16;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

RoofLoops RoofLoopsOf(CpuPath path) {
  switch (path) {
    case CpuPath::kPlain:
      return plain::Loops();
    case CpuPath::kAvx2:
      return avx2::Loops();
    case CpuPath::kAvx512:
      return avx512::Loops();
  }
  return plain::Loops();
}

std::vector<ArithmeticLoop> ExtraArithmetic(CpuPath path) {
  if (path != CpuPath::kAvx512) return {};
  return avx512::ExtraLoops();
}

Roof::Roof(int threads, CpuPath path)
    : pool_(threads),
      loops_(RoofLoopsOf(path)),
      memory_(std::move(Buffer::AllocateUnset(kBeyondCaches)).value()) {
  const TensorView all = memory_.View(DType::kF32, {kBeyondCaches / 4});
  std::fill_n(all.as<float>(), all.elements(), 1.0f);
}

double Roof::Measure(RoofKind kind) {
  if (kind == RoofKind::kArithmetic) return Measure(loops_.multiply_add);
  auto* const x = reinterpret_cast<float*>(memory_.data());
  const int64_t pieces = pool_.threads() * kPiecesPerThread;
  const int64_t piece = kBeyondCaches / 4 / pieces / 64 * 64;
  std::atomic<float> kept = 0;
  const auto start = Clock::now();
  pool_.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (kind == RoofKind::kRead) {
        kept.store(loops_.read(x + i * piece, piece), std::memory_order_relaxed);
      } else {
        loops_.rewrite(x + i * piece, piece);
      }
    }
  });
  const double bytes = static_cast<double>(pieces * piece) * 4;
  return bytes * (kind == RoofKind::kRewrite ? 2 : 1) / Since(start);
}

double Roof::Measure(const ArithmeticLoop& loop) {
  constexpr int64_t kRounds = 20'000;
  const int64_t pieces = pool_.threads() * kPiecesPerThread;
  const auto start = Clock::now();
  pool_.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) loop.run(kRounds);
  });
  return loop.operations_per_round * static_cast<double>(kRounds * pieces) / Since(start);
}

}  // namespace levin
