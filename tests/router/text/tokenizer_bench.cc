// Tokenizer speed on the three golden benchmark texts, CPU time of one thread:
//   router_text_tokenizer_bench [MODEL_DIR [prose|code|zh]]
// "first" is the first call in a fresh process, "repeated" the best of five. Compare with
// bench_tokenizers.py in the same run: only ratios mean something on a busy machine.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "router/text/sha256.h"
#include "router/text/tokenizer.h"
#include "tests/router/text/json_lines.h"

namespace levin {
namespace {

using namespace levin::testing;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr int kCalls = 6;

void Run(const Tokenizer& tokenizer, const char* name) {
  for (const auto& path : GoldenFiles("tokenizer", std::string("bench_") + name + ".txt")) {
    const std::string text = ReadAll(path);
    double first = 0, best = 1e9;
    std::vector<TokenId> ids;
    for (int i = 0; i < kCalls; ++i) {
      const double begin = CpuSeconds();
      ids = tokenizer.Encode(text, SpecialTokens::kRecognised);
      const double seconds = CpuSeconds() - begin;
      if (i == 0) first = seconds;
      if (i > 0) best = std::min(best, seconds);
    }
    std::string bytes(ids.size() * 4, '\0');
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    const double mb = static_cast<double>(text.size()) / 1e6;
    std::printf("%-6s first %6.1f MB/s, repeated %6.1f MB/s, %zu ids, sha256 %s\n", name,
                mb / first, mb / best, ids.size(), Sha256Hex(bytes).c_str());
  }
}

}  // namespace
}  // namespace levin

int main(int argc, char** argv) {
  using namespace levin;
  const auto vendor = levin::testing::VendorFile("tokenizer/m1/tokenizer.json");
  const std::filesystem::path dir =
      argc > 1 ? std::filesystem::path(argv[1]) : vendor.parent_path();
  const double begin = CpuSeconds();
  const Result<Tokenizer> tokenizer = Tokenizer::Load(dir);
  if (!tokenizer) return std::fprintf(stderr, "%s\n", tokenizer.error().message().c_str()), 1;
  std::printf("loaded in %.3f s\n", CpuSeconds() - begin);
  for (const char* name : {"prose", "code", "zh"}) {
    if (argc < 3 || std::string_view(argv[2]) == name) Run(*tokenizer, name);
  }
}
