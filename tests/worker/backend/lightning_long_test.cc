// Lightning attention against a million known tokens.
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/support/golden.h"
#include "tests/worker/backend/lightning_head.h"

namespace levin::testing {
namespace {

class SplitMix final {
 public:
  float Next() {
    uint64_t z = 2026 + ++count_ * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return static_cast<float>(2 * (static_cast<double>(z >> 11) * 0x1p-53) - 1);
  }

 private:
  uint64_t count_ = 0;
};

std::vector<double> Numbers(const boost::json::value& list) {
  std::vector<double> numbers;
  for (const auto& entry : list.as_array()) {
    if (!entry.is_array()) {
      numbers.push_back(entry.to_number<double>());
      continue;
    }
    for (double number : Numbers(entry)) numbers.push_back(number);
  }
  return numbers;
}

class LightningLongTest : public LightningTest {};

TEST_P(LightningLongTest, AMillionTokensStayWithinOneInAHundredThousand) {
  for (const auto& dir : GoldenDirs("network")) {
    std::ifstream in(dir / "lightning-long.json");
    const boost::json::value golden =
        boost::json::parse(std::string{std::istreambuf_iterator<char>(in), {}});
    const auto d = golden.at("d").to_number<int64_t>();
    constexpr int64_t kPiece = 4096;
    for (const bool stepwise : {false, true}) {
      for (const auto& c : golden.at("cases").as_array()) {
        const auto slope = c.at("slope").to_number<double>();
        const Owned states(DType::kF32, {3, 2, 1, d * d});
        const Owned qkv(DType::kF32, {kPiece, 1, 3 * d});
        const Owned out(DType::kF32, {kPiece, 1, d});
        SplitMix source;
        int64_t done = 0;
        double worst = 0;
        for (const auto& point : c.at("points").as_array()) {
          const auto until = point.at("t").to_number<int64_t>();
          int64_t last = 0;
          while (done < until) {
            last = std::min(kPiece, until - done);
            float* to = qkv.view.as<float>();
            for (int64_t i = 0; i < last * 3 * d; ++i) to[i] = source.Next();
            Owned in_part, out_part;
            in_part.view = qkv.view.Rows(0, last);
            out_part.view = out.view.Rows(0, last);
            Run(in_part, done, stepwise, slope, states, out_part, done == 0);
            done += last;
          }
          worst = std::max(worst, Worst(State(states), Numbers(point.at("state"))));
          worst =
              std::max(worst, Worst(out.view.as<float>() + (last - 1) * d, Numbers(point.at("o"))));
        }
        std::printf("  s %.5g %s: %.2g\n", slope, stepwise ? "token by token" : "blocks", worst);
        EXPECT_LE(worst, 1e-5) << slope << (stepwise ? " stepwise" : " blocks");
      }
    }
  }
}

// The plain path, which is slow, has this test's shorter sisters.
INSTANTIATE_TEST_SUITE_P(Paths, LightningLongTest, ::testing::ValuesIn(FastPaths()), PathName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LightningLongTest);

}  // namespace
}  // namespace levin::testing
