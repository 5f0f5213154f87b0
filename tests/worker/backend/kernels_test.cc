// The fast kernels against their plain twins, at sizes that no vector divides; and a row alone
// against the same row in company, bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

constexpr double kClose = 3e-6;        // fp32 sums in another order
constexpr double kOneRounding = 9e-3;  // an ulp of bf16, where the sums round to different sides

struct Weights {
  Owned data, scale;
  WeightMatrix matrix;
};
Weights MakeWeights(Random& random, DType dtype, int64_t rows, int64_t cols) {
  Weights w;
  w.data =
      dtype == DType::kI8 ? random.Bytes({rows, cols}) : random.Floats(DType::kBF16, {rows, cols});
  if (dtype == DType::kI8) {
    w.scale = random.Floats(DType::kF32, {rows}, 0.01f);
  }
  w.matrix = {w.data.view, w.scale.view, rows, cols, false};
  return w;
}

class KernelsTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  Kernels& plain() { return plain_->kernels(); }
  Kernels& fast() { return fast_->kernels(); }
  // The same weights in the fast kernels' order; `from` lends the scales.
  Weights Packed(const Weights& from) {
    Weights to{Copy(from.data), {}, from.matrix};
    to.matrix.data = to.data.view;
    fast_->Pack(to.matrix);
    return to;
  }

  std::unique_ptr<Backend> plain_ = MakeCpuBackend({1, CpuPath::kPlain});
  std::unique_ptr<Backend> fast_ = MakeCpuBackend({2, GetParam()});
};

TEST_P(KernelsTest, ProductsAgreeAtOddSizes) {
  Random random(1);
  for (const int64_t n : {1, 15, 16, 17, 33, 80}) {
    for (const int64_t k : {1, 2, 3, 31, 64, 97}) {
      for (const int64_t m : {1, 2, 5, 13}) {
        for (const DType x_type : {DType::kF32, DType::kBF16}) {
          for (const DType w_type : {DType::kBF16, DType::kI8}) {
            const DType out_type = k % 2 == 0 ? DType::kF32 : DType::kBF16;
            const Epilogue epilogue = m % 2 == 0 ? Epilogue::kSilu : Epilogue::kNone;
            const Weights weights = MakeWeights(random, w_type, n, k);
            const Weights packed = Packed(weights);
            const Owned x = random.Floats(x_type, {m, k});
            const Owned expected(out_type, {m, n});
            const Owned got(out_type, {m, n});
            plain().MatMul({x.view, &weights.matrix, expected.view, epilogue});
            fast().MatMul({x.view, &packed.matrix, got.view, epilogue});
            EXPECT_LE(RelativeDifference(got, expected),
                      out_type == DType::kF32 ? kClose : kOneRounding)
                << m << " x " << n << " x " << k << ' ' << Name(x_type) << ' ' << Name(w_type);
          }
        }
      }
    }
  }
}

// Companies that take other ways through the kernels, and more of K than one stretch.
TEST_P(KernelsTest, ARowOfAProductHasTheSameBitsInAnyCompany) {
  Random random(2);
  for (const DType w_type : {DType::kBF16, DType::kI8}) {
    for (const DType x_type : {DType::kF32, DType::kBF16}) {
      for (const int64_t k : {130, 513}) {
        const Weights plain_weights = MakeWeights(random, w_type, 83, k);
        const Weights weights = Packed(plain_weights);
        const Owned x = random.Floats(x_type, {140, k});
        const auto product = [&](int64_t first, int64_t rows) {
          Owned out(DType::kF32, {rows, 83});
          fast().MatMul({x.view.Rows(first, rows), &weights.matrix, out.view, Epilogue::kSilu});
          return out;
        };
        const Owned together = product(0, 140);
        for (const int64_t rows : {1, 2, 3, 4, 5, 8, 12, 13, 29, 127}) {
          for (int64_t first = 0; first + rows <= 140; first += 37) {
            EXPECT_TRUE(SameBits(product(first, rows).view, together.view.Rows(first, rows)))
                << first << ' ' << rows << ' ' << k;
          }
        }
      }
    }
  }
}

struct ExpertSet {
  std::vector<Weights> owners;
  std::vector<WeightMatrix> w1, w3, w2;
};

TEST_P(KernelsTest, ExpertsAgreeAtOddSizesAndUnevenLoads) {
  Random random(3);
  constexpr int64_t kExperts = 5, kChosen = 2;
  for (const DType w_type : {DType::kBF16, DType::kI8}) {
    for (const DType act : {DType::kF32, DType::kBF16}) {
      for (const auto& [tokens, hidden, width] : {std::tuple<int64_t, int64_t, int64_t>{1, 48, 20},
                                                  {3, 50, 33},
                                                  {40, 97, 64},
                                                  {300, 263, 150}}) {
        ExpertSet plain_set, fast_set;
        for (int64_t e = 0; e < kExperts; ++e) {
          for (auto [part, rows, cols] :
               {std::tuple{0, width, hidden}, {1, width, hidden}, {2, hidden, width}}) {
            plain_set.owners.push_back(MakeWeights(random, w_type, rows, cols));
            fast_set.owners.push_back(Packed(plain_set.owners.back()));
            for (ExpertSet* set : {&plain_set, &fast_set}) {
              auto& list = part == 0 ? set->w1 : part == 1 ? set->w3 : set->w2;
              list.push_back(set->owners.back().matrix);
            }
          }
        }
        const Owned x = random.Floats(act, {tokens, hidden}, 0.2f);
        const Owned chosen(DType::kI32, {tokens, kChosen});
        for (int64_t t = 0; t < tokens; ++t) {  // most go to expert 3, nobody to expert 4
          chosen.view.as<int32_t>()[2 * t] = 3;
          chosen.view.as<int32_t>()[2 * t + 1] = random.Below(3);
        }
        const Owned weights = random.Floats(DType::kF32, {tokens, kChosen});
        const Owned hidden_act(act, {tokens * kChosen, width});
        const Owned order(DType::kI32, {2 * tokens * kChosen + kExperts + 1});
        const Owned expected(DType::kF32, {tokens, hidden});
        const Owned got(DType::kF32, {tokens, hidden});
        plain().ExpertMatMul({x.view, plain_set.w1, plain_set.w3, plain_set.w2, chosen.view,
                              weights.view, hidden_act.view, order.view, expected.view});
        fast().ExpertMatMul({x.view, fast_set.w1, fast_set.w3, fast_set.w2, chosen.view,
                             weights.view, hidden_act.view, order.view, got.view});
        EXPECT_LE(RelativeDifference(got, expected), act == DType::kF32 ? kClose : kOneRounding)
            << tokens << ' ' << Name(w_type) << ' ' << Name(act);
      }
    }
  }
}

TEST_P(KernelsTest, AttentionAgreesForPromptsAndSingleTokens) {
  Random random(4);
  constexpr int64_t kBlocks = 12;
  for (const auto& [heads, kv_heads, dim] :
       {std::tuple<int64_t, int64_t, int64_t>{8, 2, 16}, {3, 3, 48}, {8, 1, 128}, {4, 2, 20}}) {
    for (const DType kv_type : {DType::kF32, DType::kBF16}) {
      TestRows rows;
      rows.Add(0, 70, 0, false, {3, 7});
      rows.Add(200, 1, 1, true, {1, 11, 4, 0});
      rows.Add(63, 2, 2, false, {8, 9});
      const Owned query = random.Floats(DType::kF32, {rows.tokens(), heads, dim});
      const Owned keys = random.Floats(DType::kF32, {rows.tokens(), kv_heads, dim});
      const Owned values = random.Floats(DType::kF32, {rows.tokens(), kv_heads, dim});
      const Owned cache = random.Floats(kv_type, {kBlocks, 4, kv_heads, kKvBlockTokens * dim});
      const Owned pieces(DType::kI32, {rows.tokens()});
      const Owned expected(DType::kF32, {rows.tokens(), heads, dim});
      const Owned got(DType::kF32, {rows.tokens(), heads, dim});
      plain().StoreKv({keys.view, values.view, rows.table(), cache.view, 1});
      plain().PagedAttention(
          {query.view, rows.table(), cache.view, 1, kv_heads, pieces.view, expected.view});
      fast().PagedAttention(
          {query.view, rows.table(), cache.view, 1, kv_heads, pieces.view, got.view});
      EXPECT_LE(RelativeDifference(got, expected), kClose) << heads << ' ' << dim;
    }
  }
}

// The first token's keys, then what a former tenant left: NaN everywhere.
TEST_P(KernelsTest, AttentionNeverReadsBeyondTheSequence) {
  Random random(5);
  const Owned cache(DType::kF32, {2, 2, 1, kKvBlockTokens * 16});
  for (int64_t i = 0; i < cache.view.elements(); ++i) {
    cache.view.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  TestRows rows;
  rows.Add(0, 66, 0, false, {1, 0});
  const Owned query = random.Floats(DType::kF32, {66, 2, 16});
  const Owned keys = random.Floats(DType::kF32, {66, 1, 16});
  const Owned values = random.Floats(DType::kF32, {66, 1, 16});
  const Owned pieces(DType::kI32, {66});
  const Owned out(DType::kF32, {66, 2, 16});
  fast().StoreKv({keys.view, values.view, rows.table(), cache.view, 0});
  fast().PagedAttention({query.view, rows.table(), cache.view, 0, 1, pieces.view, out.view});
  for (int64_t i = 0; i < out.view.elements(); ++i) ASSERT_TRUE(std::isfinite(out.at(i))) << i;
}

TEST_P(KernelsTest, NormsAndGatesAgreeAtOddSizes) {
  Random random(6);
  for (const int64_t n : {1, 7, 16, 50, 129}) {
    const Owned residual = random.Floats(DType::kF32, {3, n});
    const Owned update = random.Floats(DType::kF32, {3, n});
    const Owned weight = random.Floats(DType::kF32, {n});
    Owned out[2], sums[2], gated[2];
    const Owned squares(DType::kF32, {3});
    for (int i = 0; i < 2; ++i) {
      Kernels& kernels = i == 0 ? plain() : fast();
      out[i] = Owned(DType::kF32, {3, n});
      sums[i] = Owned(DType::kF32, {3, n});
      kernels.RmsNorm({residual.view, update.view, 2.5f, 0.5f, weight.view, 1e-5f, sums[i].view,
                       out[i].view, out[i].view});
      const Owned gate = Copy(residual);
      kernels.SumSquares({update.view, squares.view});
      gated[i] = Owned(DType::kF32, {3, n});
      kernels.GateNorm(
          {update.view, gate.view, squares.view, 2 * n, weight.view, 1e-6f, gated[i].view});
    }
    EXPECT_LE(RelativeDifference(out[1], out[0]), kClose) << n;
    EXPECT_LE(RelativeDifference(sums[1], sums[0]), kClose) << n;
    EXPECT_LE(RelativeDifference(gated[1], gated[0]), kClose) << n;
  }
}

TEST_P(KernelsTest, Bfloat16IsTheNearestOfWhatWasComputed) {
  Random random(8);
  constexpr int64_t kN = 203;
  Owned update = random.Floats(DType::kF32, {3, kN});
  update.view.as<float>()[kN + 5] = std::numeric_limits<float>::quiet_NaN();  // the row 1
  update.view.as<float>()[2 * kN] = std::numeric_limits<float>::infinity();   // inf / inf: NaN too
  const Owned weight = random.Floats(DType::kF32, {kN});
  const Owned squares = random.Floats(DType::kF32, {3});
  for (int64_t t = 0; t < 3; ++t) squares.view.as<float>()[t] = 100;
  const Owned normed(DType::kF32, {3, kN}), gate = random.Floats(DType::kF32, {3, kN});
  const Owned out(DType::kBF16, {3, kN}), gated(DType::kBF16, {3, kN});
  fast().GateNorm({update.view, gate.view, squares.view, kN, weight.view, 1e-6f, gated.view});
  fast().RmsNorm({{}, update.view, 0, 1, weight.view, 1e-5f, {}, normed.view, out.view});
  for (int64_t i = 0; i < 3 * kN; ++i) {
    EXPECT_EQ(out.view.as<uint16_t>()[i], FloatToBf16(normed.view.as<float>()[i])) << i;
    EXPECT_EQ(gated.view.as<uint16_t>()[i], FloatToBf16(gate.view.as<float>()[i])) << i;
  }
}

TEST_P(KernelsTest, ANanStaysInItsRow) {
  Random random(7);
  Owned gate = random.Floats(DType::kF32, {2, 40});
  const Owned x = random.Floats(DType::kF32, {2, 40});
  const Owned weight = random.Floats(DType::kF32, {40});
  gate.view.as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const Owned squares(DType::kF32, {2});
  const Owned out(DType::kF32, {2, 40});
  fast().SumSquares({x.view, squares.view});
  fast().GateNorm({x.view, gate.view, squares.view, 40, weight.view, 1e-6f, out.view});
  for (int64_t i = 0; i < 80; ++i) EXPECT_EQ(i == 3, std::isnan(out.at(i))) << i;
}

std::string PathName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(Name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Fast, KernelsTest, ::testing::ValuesIn(FastPaths()), PathName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelsTest);

}  // namespace
}  // namespace levin::testing
