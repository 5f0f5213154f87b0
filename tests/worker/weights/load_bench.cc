// How fast a model folder becomes a rank's weights, beside the roof of the same minutes: a plain
// pread loop over the same files.
//
//   load_bench MODEL_DIR RANKS int8|bf16 THREADS ROUNDS
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/config/regular_file.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/weight_loader.h"

namespace {

using levin::LoadOptions;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// Of all threads of the process: what a busy machine cannot falsify.
double CpuSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Run {
  double seconds = 0;
  double cpu_seconds = 0;
  int64_t bytes = 0;
  double gigabytes() const { return static_cast<double>(bytes) / 1e9; }
  double gigabytes_per_s() const { return gigabytes() / seconds; }
};

// Every byte of every file, in pieces of 4 MiB.
Run ReadOnly(const std::filesystem::path& dir) {
  std::vector<std::byte> piece(size_t{4} << 20);
  Run run;
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  const auto checkpoint = levin::Checkpoint::Open(dir);
  for (const levin::SafetensorsFile& shard : checkpoint->files()) {
    const auto file = levin::RegularFile::Open(shard.path());
    for (int64_t at = 0; at < file->size(); at += static_cast<int64_t>(piece.size())) {
      const auto size = std::min(static_cast<int64_t>(piece.size()), file->size() - at);
      if (!file->Read(at, std::span(piece).first(static_cast<size_t>(size))).ok()) std::exit(1);
      run.bytes += size;
    }
  }
  run.seconds = Seconds(start);
  run.cpu_seconds = CpuSeconds() - cpu_start;
  return run;
}

// The same into memory that nobody had before: what loading cannot do without.
Run ReadIntoFreshMemory(const std::filesystem::path& dir) {
  Run run;
  std::vector<levin::Buffer> kept;
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  const auto checkpoint = levin::Checkpoint::Open(dir);
  for (const levin::SafetensorsFile& shard : checkpoint->files()) {
    const auto file = levin::RegularFile::Open(shard.path());
    auto buffer = levin::Buffer::AllocateUnset(file->size());
    if (!buffer) std::exit(1);
    if (!file->Read(0, {buffer->data(), static_cast<size_t>(file->size())}).ok()) std::exit(1);
    run.bytes += file->size();
    kept.push_back(*std::move(buffer));
  }
  run.seconds = Seconds(start);
  run.cpu_seconds = CpuSeconds() - cpu_start;
  return run;
}

Run Load(const std::filesystem::path& dir, const LoadOptions& base) {
  const auto config = levin::LoadModelConfig(dir);
  Run run;
  LoadOptions options = base;
  options.progress = [&](int64_t, int64_t total) { run.bytes = total; };
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  const auto weights = levin::LoadWeights(dir, *config, options);
  run.seconds = Seconds(start);
  run.cpu_seconds = CpuSeconds() - cpu_start;
  if (!weights) {
    std::fprintf(stderr, "%s\n", weights.error().message().c_str());
    std::exit(1);
  }
  return run;
}

void Print(const char* name, std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.gigabytes_per_s() < b.gigabytes_per_s(); });
  double cpu = runs.back().cpu_seconds;
  for (const Run& run : runs) cpu = std::min(cpu, run.cpu_seconds);
  std::printf("%-12s median %6.2f GB/s, best %6.2f GB/s, %6.2f GB a CPU second at best (%.2f GB)\n",
              name, runs[runs.size() / 2].gigabytes_per_s(), runs.back().gigabytes_per_s(),
              runs.back().gigabytes() / cpu, runs.back().gigabytes());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: load_bench MODEL_DIR RANKS int8|bf16 THREADS ROUNDS\n");
    return 2;
  }
  const std::filesystem::path dir = argv[1];
  LoadOptions options;
  options.ranks = std::atoi(argv[2]);
  options.quantize_experts_int8 = std::string(argv[3]) == "int8";
  options.threads = std::atoi(argv[4]);
  std::vector<Run> roof, fresh, load;
  for (int round = 0; round < std::atoi(argv[5]); ++round) {
    roof.push_back(ReadOnly(dir));
    fresh.push_back(ReadIntoFreshMemory(dir));
    load.push_back(Load(dir, options));
  }
  Print("pread", roof);
  Print("pread, new", fresh);
  Print("LoadWeights", load);
}
