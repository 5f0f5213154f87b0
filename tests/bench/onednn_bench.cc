// Products of prompts against oneDNN's best on the same numbers, in turns in one process with as
// many threads: oneDNN with weights in its own order, in fp32 and, where it has it, in bf16.
//
//   onednn_bench [threads] [rounds]         Markdown; the best round of each counts
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <thread>

#include "common/base/check.h"
#include "worker/backend/cpu/cpu_backend.h"
#include "worker/bench/random_tensor.h"
#include "worker/tensor/bf16.h"

namespace levin {
namespace {

using Clock = std::chrono::steady_clock;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

struct MatrixShape {
  int64_t in, out;
};
constexpr MatrixShape kShapes[] = {
    {6144, 1152}, {1152, 6144}, {6144, 1536}, {1024, 1536}, {1536, 1024}};
constexpr int64_t kTokens[] = {64, 128, 512};

Type TypeOf(const TensorView& tensor) {
  return tensor.dtype == DType::kF32 ? Type::f32 : Type::bf16;
}

// x [M, K] and row-major weights [N, K] of one type.
class OneDnnProduct final {
 public:
  OneDnnProduct(const TensorView& x, const TensorView& weights, const TensorView& out)
      : x_({{x.shape[0], x.shape[1]}, TypeOf(x), Tag::ab}, engine_, x.data),
        out_({{out.shape[0], out.shape[1]}, Type::f32, Tag::ab}, engine_, out.data) {
    const dnnl::memory::dims dims = {weights.shape[1], weights.shape[0]};
    const dnnl::matmul::desc desc(x_.get_desc(), {dims, TypeOf(weights), Tag::any},
                                  out_.get_desc());
    const dnnl::matmul::primitive_desc best(desc, engine_);
    product_ = dnnl::matmul(best);
    dnnl::memory plain({dims, TypeOf(weights), Tag::ba}, engine_, weights.data);
    weights_ = dnnl::memory(best.weights_desc(), engine_);
    dnnl::reorder(plain, weights_).execute(stream_, plain, weights_);
    stream_.wait();
  }
  void Run() {
    product_.execute(stream_,
                     {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory x_, out_, weights_;
  dnnl::primitive product_;
};

std::optional<OneDnnProduct> Supported(const TensorView& x, const TensorView& weights,
                                       const TensorView& out) {
  try {
    return std::optional<OneDnnProduct>(std::in_place, x, weights, out);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return std::nullopt;
    throw;
  }
}

OwnedTensor Widened(const OwnedTensor& bf16) {
  OwnedTensor wide = EmptyTensor(DType::kF32, bf16.view.shape);
  for (int64_t i = 0; i < wide.view.elements(); ++i) {
    wide.view.as<float>()[i] = Bf16ToFloat(bf16.view.as<uint16_t>()[i]);
  }
  return wide;
}

// Both computed the same, or the times mean nothing.
void CheckClose(const TensorView& ours, const TensorView& theirs) {
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < ours.elements(); ++i) {
    const double value = theirs.as<float>()[i];
    worst = std::max(worst, std::abs(value - ours.as<float>()[i]));
    largest = std::max(largest, std::abs(value));
  }
  CHECK(worst <= 1e-5 * largest, worst, largest);
}

struct Rival {
  std::function<void()> run;
  double best = 0;  // GFLOP/s
};

void Time(Rival& rival, double operations) {
  if (!rival.run) return;
  // Threads of the other library spin for a moment before they sleep.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto start = Clock::now();
  rival.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  rival.best = std::max(rival.best, operations / seconds / 1e9);
}

std::string Cell(const Rival& rival, double roof) {
  if (rival.best == 0) return "not on this processor";
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f", rival.best);
  if (roof > 0)
    std::snprintf(text, sizeof(text), "%.1f (%.0f%%)", rival.best, rival.best / roof * 100);
  return text;
}

void Compare(Backend& backend, const MatrixShape& shape, int64_t tokens, int rounds) {
  const OwnedTensor plain = RandomTensor(DType::kBF16, {shape.out, shape.in});
  const OwnedTensor wide = Widened(plain);
  const RandomMatrices packed = MakeMatrices(backend, DType::kBF16, shape.out, shape.in, 0, 1);
  const RandomMatrices bytes = MakeMatrices(backend, DType::kI8, shape.out, shape.in, 0, 1);
  const OwnedTensor x16 = RandomTensor(DType::kBF16, {tokens, shape.in});
  const OwnedTensor x32 = Widened(x16);
  const OwnedTensor ours = EmptyTensor(DType::kF32, {tokens, shape.out});
  const OwnedTensor theirs = EmptyTensor(DType::kF32, {tokens, shape.out});
  OneDnnProduct fp32(x32.view, wide.view, theirs.view);
  std::optional<OneDnnProduct> bf16 = Supported(x16.view, plain.view, theirs.view);
  const auto levin = [&](const OwnedTensor& x, const RandomMatrices& weights) {
    return Rival{[&] { backend.kernels().MatMul({x.view, &weights.matrices[0], ours.view}); }};
  };
  levin(x32, packed).run();
  fp32.Run();
  CheckClose(ours.view, theirs.view);

  Rival dnnl32{[&] { fp32.Run(); }}, dnnl16;
  if (bf16) dnnl16.run = [&] { bf16->Run(); };
  Rival levins[] = {levin(x32, packed), levin(x16, packed), levin(x32, bytes), levin(x16, bytes)};
  const double operations = 2.0 * static_cast<double>(tokens * shape.in * shape.out);
  for (int i = 0; i <= rounds; ++i) {
    Time(dnnl32, operations);
    Time(dnnl16, operations);
    for (Rival& one : levins) Time(one, operations);
  }
  std::printf("| %ld to %ld | %ld | %s | %s |", static_cast<long>(shape.in),
              static_cast<long>(shape.out), static_cast<long>(tokens), Cell(dnnl32, 0).c_str(),
              Cell(dnnl16, 0).c_str());
  const double best = std::max(dnnl32.best, dnnl16.best);
  // With float32 activations both multiply in fp32; with bfloat16 the rival's better one counts.
  std::printf(" %s | %s | %s | %s |\n", Cell(levins[0], dnnl32.best).c_str(),
              Cell(levins[1], best).c_str(), Cell(levins[2], dnnl32.best).c_str(),
              Cell(levins[3], best).c_str());
  std::fflush(stdout);
}

int Main(int threads, int rounds) {
  const auto backend = MakeCpuBackend({threads, BestCpuPath()});
  std::printf("GFLOP/s, %d threads, %s; in brackets the share of oneDNN's best\n\n", threads,
              std::string(Name(BestCpuPath())).c_str());
  std::printf(
      "| product | tokens | oneDNN fp32 | oneDNN bf16 | bf16 weights, float32 | bfloat16 | int8 "
      "weights, float32 | bfloat16 |\n|---|---|---|---|---|---|---|---|\n");
  for (const MatrixShape& shape : kShapes) {
    for (const int64_t tokens : kTokens) Compare(*backend, shape, tokens, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace levin

int main(int argc, char** argv) {
  const std::string threads = argc > 1 ? argv[1] : std::to_string(levin::CpuThreadsPerRank(1));
  // OpenMP reads its settings before main: once more with ours.
  if (getenv("GOMP_SPINCOUNT") == nullptr) {
    setenv("GOMP_SPINCOUNT", "100000", 1);
    setenv("OMP_NUM_THREADS", threads.c_str(), 1);
    execv("/proc/self/exe", argv);
    std::perror("onednn_bench: execv");
    return 1;
  }
  return levin::Main(std::max(1, std::atoi(threads.c_str())), argc > 2 ? std::atoi(argv[2]) : 9);
}
