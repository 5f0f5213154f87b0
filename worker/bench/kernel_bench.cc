#include "worker/bench/kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace levin {
namespace {

using Clock = std::chrono::steady_clock;

// Long against a wake-up of the threads, short against a neighbour's turn on the core.
constexpr double kShortestRun = 0.005;

struct Group {
  const char* name;
  void (*cases)(Backend& backend, const CaseSink& sink);
};
constexpr Group kGroups[] = {{"matmul", MatMulCases},
                             {"experts", ExpertCases},
                             {"lightning", LightningCases},
                             {"attention", SoftmaxAttentionCases},
                             {"norms", NormCases}};

double Seconds(const KernelCase& what, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) what.run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Kernel, roofs, kernel, roofs, ...: all have the machine's good moments and its bad ones.
KernelResult Measure(const KernelCase& what, Roof& roof, int rounds) {
  what.run();  // pages, caches, threads
  const int repeats = 1 + static_cast<int>(kShortestRun / Seconds(what, 1));
  double seconds = Seconds(what, repeats) / repeats;
  double memory = 0, arithmetic = 0;
  for (int i = 0; i < rounds; ++i) {
    if (what.bytes > 0) memory = std::max(memory, roof.Measure(what.memory));
    if (what.operations > 0) arithmetic = std::max(arithmetic, roof.Measure(RoofKind::kArithmetic));
    seconds = std::min(seconds, Seconds(what, repeats) / repeats);
  }
  KernelResult result{what, what.memory, what.bytes / seconds, memory};
  if (what.bytes * arithmetic < what.operations * memory || what.bytes == 0) {
    result = {what, RoofKind::kArithmetic, what.operations / seconds, arithmetic};
  }
  result.what.run = nullptr;
  return result;
}

std::vector<MachineRoof> MeasureRoofs(Roof& roof, const KernelBenchOptions& options) {
  const auto best = [&](const auto& measure) {
    double rate = 0;
    for (int i = 0; i < options.rounds; ++i) rate = std::max(rate, measure());
    return rate;
  };
  std::vector<MachineRoof> roofs;
  roofs.push_back({"read memory", best([&] { return roof.Measure(RoofKind::kRead); })});
  roofs.push_back({"rewrite memory in place, both ways counted",
                   best([&] { return roof.Measure(RoofKind::kRewrite); })});
  const ArithmeticLoop fp32 = RoofLoopsOf(options.path).multiply_add;
  roofs.push_back({fp32.name, best([&] { return roof.Measure(fp32); }), true});
  for (const ArithmeticLoop& loop : ExtraArithmetic(options.path)) {
    roofs.push_back({loop.name, best([&] { return roof.Measure(loop); }), true});
  }
  return roofs;
}

}  // namespace

std::vector<std::string> KernelGroups() {
  std::vector<std::string> names;
  for (const Group& group : kGroups) names.emplace_back(group.name);
  return names;
}

KernelBenchResult RunKernels(const KernelBenchOptions& options) {
  Roof roof(options.threads, options.path);
  const std::unique_ptr<Backend> backend = MakeCpuBackend({options.threads, options.path});
  KernelBenchResult result{options, MeasureRoofs(roof, options), {}};
  for (const Group& group : kGroups) {
    if (options.which != "all" && options.which != group.name) continue;
    group.cases(*backend, [&](const KernelCase& what) {
      result.kernels.push_back(Measure(what, roof, options.rounds));
      options.progress(what.kernel + " " + what.shape + ", " + what.weights + " weights, " +
                       what.activations + ", " + std::to_string(what.tokens) + " tokens: " +
                       std::to_string(static_cast<int>(result.kernels.back().share() * 100)) + "%");
    });
  }
  return result;
}

}  // namespace levin
