// Lightning attention against its definition in double (model.md 4.5 and 12), and against a million
// known tokens.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/support/golden.h"
#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

// S = e^(-s) S + k^T v; o = q S, in double. qkv [tokens, 3 * d].
struct Recurrence {
  int64_t d;
  double slope;
  std::vector<double> state = std::vector<double>(d * d, 0.0);

  std::vector<double> Step(const float* qkv) {
    const double decay = std::exp(-slope);
    std::vector<double> o(d, 0.0);
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j < d; ++j) {
        double& s = state[i * d + j];
        s = decay * s + double{qkv[d + i]} * qkv[2 * d + j];
        o[j] += qkv[i] * s;
      }
    }
    return o;
  }
};

// Largest difference over the largest value; inputs are of order 1, so below 1 it is absolute.
double Worst(const float* got, const std::vector<double>& expected) {
  double worst = 0, largest = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

class LightningTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  // Runs one row of one head of layer 1 of 2, in slot 1 of 3.
  void Run(const Owned& qkv, int64_t position, bool stepwise, double slope, const Owned& states,
           const Owned& out, bool fresh) {
    TestRows rows;
    rows.Add(position, qkv.view.shape[0], 1, stepwise);
    rows.fresh[0] = fresh;
    const double slopes[1] = {slope};
    backend_->kernels().LightningAttention(
        {qkv.view, rows.table(), states.view, 1, slopes, out.view});
  }
  static const float* State(const Owned& states) {
    return states.view.as<float>() + (1 * 2 + 1) * states.view.shape[3];
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({1, GetParam()});
};

TEST_P(LightningTest, BothFormsAreTheRecurrenceForAnyLengthCutAndDecay) {
  Random random(1);
  for (const int64_t d : {16, 48, 20}) {
    for (const double slope : {0.0, 4.9e-5, 0.0039, 0.1, 0.917, 40.0}) {
      for (const int64_t length : {1, 2, 63, 64, 65, 130}) {
        for (const int64_t cut : {int64_t{0}, int64_t{1}, length / 2}) {
          for (const bool stepwise : {false, true}) {
            const Owned qkv = random.Floats(DType::kF32, {length, 1, 3 * d});
            Owned states(DType::kF32, {3, 2, 1, d * d});
            for (int64_t i = 0; i < states.view.elements(); ++i) {
              states.view.as<float>()[i] = NAN;  // the former tenant's
            }
            const Owned out(DType::kF32, {length, 1, d});
            if (cut > 0) {
              Owned head;
              head.view = qkv.view.Rows(0, cut);
              Owned head_out;
              head_out.view = out.view.Rows(0, cut);
              Run(head, 0, stepwise, slope, states, head_out, true);
            }
            Owned tail, tail_out;
            tail.view = qkv.view.Rows(cut, length - cut);
            tail_out.view = out.view.Rows(cut, length - cut);
            if (length > cut) Run(tail, cut, stepwise, slope, states, tail_out, cut == 0);
            Recurrence expected{d, slope};
            std::vector<double> outputs;
            for (int64_t t = 0; t < length; ++t) {
              const std::vector<double> o = expected.Step(qkv.view.as<float>() + t * 3 * d);
              outputs.insert(outputs.end(), o.begin(), o.end());
            }
            ASSERT_LE(Worst(out.view.as<float>(), outputs), 1e-5)
                << length << " tokens, s " << slope << ", cut " << cut << ", form " << stepwise;
            ASSERT_LE(Worst(State(states), expected.state), 1e-5) << length << ' ' << slope;
          }
        }
      }
    }
  }
}

TEST_P(LightningTest, AnImpulseDecaysByOneStepPerToken) {
  constexpr int64_t kD = 16, kLength = 100;
  constexpr double kSlope = 0.05;
  for (const bool stepwise : {false, true}) {
    const Owned qkv(DType::kF32, {kLength, 1, 3 * kD});
    for (int64_t t = 0; t < kLength; ++t) qkv.view.as<float>()[t * 3 * kD] = 1;  // q = e_0
    qkv.view.as<float>()[kD] = 2;                                                // k of token 0
    qkv.view.as<float>()[2 * kD] = 3;                                            // v of token 0
    const Owned states(DType::kF32, {3, 2, 1, kD * kD});
    const Owned out(DType::kF32, {kLength, 1, kD});
    Run(qkv, 0, stepwise, kSlope, states, out, true);
    for (int64_t t = 0; t < kLength; ++t) {
      EXPECT_NEAR(6 * std::exp(-kSlope * static_cast<double>(t)), out.at(t * kD), 1e-5) << t;
    }
  }
}

// Cut at multiples of 64, alone or beside others, in any slot: the same bits.
TEST_P(LightningTest, ChunksOnTheGridGiveTheBitsOfTheWhole) {
  Random random(3);
  constexpr int64_t kD = 32, kLength = 200, kHeads = 2;
  const Owned qkv = random.Floats(DType::kF32, {kLength, kHeads, 3 * kD});
  const double slopes[kHeads] = {0.3, 0.001};
  const Owned whole(DType::kF32, {kLength, kHeads, kD});
  const Owned states(DType::kF32, {4, 1, kHeads, kD * kD});
  TestRows rows;
  rows.Add(0, kLength, 0);
  Kernels& kernels = backend_->kernels();
  kernels.LightningAttention({qkv.view, rows.table(), states.view, 0, slopes, whole.view});
  for (int64_t at = 0; at < kLength; at += 64) {
    const int64_t count = std::min<int64_t>(64, kLength - at);
    const Owned both(DType::kF32, {count + 3, kHeads, 3 * kD});
    std::copy_n(qkv.view.Rows(at, count).data, count * qkv.view.row_bytes(),
                both.view.Rows(3, count).data);
    const Owned out(DType::kF32, {count + 3, kHeads, kD});
    TestRows two;
    two.Add(at, 3, 1);
    two.Add(at, count, 3);
    kernels.LightningAttention({both.view, two.table(), states.view, 0, slopes, out.view});
    EXPECT_TRUE(SameBits(out.view.Rows(3, count), whole.view.Rows(at, count))) << at;
  }
  EXPECT_TRUE(SameBits(states.view.Rows(3, 1), states.view.Rows(0, 1)));
}

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

TEST_P(LightningTest, AMillionTokensStayWithinOneInAHundredThousand) {
  if (GetParam() == CpuPath::kPlain) GTEST_SKIP() << "the fast paths take this test";
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

std::vector<CpuPath> AllPaths() {
  std::vector<CpuPath> paths = FastPaths();
  paths.push_back(CpuPath::kPlain);
  return paths;
}
std::string PathName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(Name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Paths, LightningTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
