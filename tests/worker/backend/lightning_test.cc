// Lightning attention against its definition in double (model.md 4.5 and 12).
#include <cmath>

#include "tests/worker/backend/lightning_head.h"

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

std::vector<CpuPath> AllPaths() {
  std::vector<CpuPath> paths = FastPaths();
  paths.push_back(CpuPath::kPlain);
  return paths;
}
INSTANTIATE_TEST_SUITE_P(Paths, LightningTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
