// Everything of a layer but its attention against its formula in double: products, experts of any
// number, norms and gates, at sizes that no vector divides; every path of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

constexpr double kClose = 1e-5;        // of the largest value: fp32 sums beside double
constexpr double kOneRounding = 9e-3;  // a bf16 on the way

double Silu(double x) { return x / (1 + std::exp(-x)); }

// A matrix as the test sees it, and the same in the order of a backend.
struct Weights {
  Owned stored, scale, packed;
  WeightMatrix matrix;

  double at(int64_t row, int64_t col) const {
    const int64_t i = row * matrix.cols + col;
    if (stored.view.dtype == DType::kI8) return stored.view.as<int8_t>()[i] * scale.at(row);
    return stored.at(i);
  }
  std::vector<double> Times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(matrix.rows), 0.0);
    for (int64_t row = 0; row < matrix.rows; ++row) {
      for (int64_t col = 0; col < matrix.cols; ++col) y[row] += at(row, col) * x[col];
    }
    return y;
  }
};

class LayerContractTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  Kernels& kernels() { return backend_->kernels(); }

  Weights Make(Random& random, DType type, int64_t rows, int64_t cols) {
    Weights w;
    const float size = 1 / std::sqrt(static_cast<float>(cols));
    w.stored = type == DType::kI8 ? random.Bytes({rows, cols})
                                  : random.Floats(DType::kBF16, {rows, cols}, size);
    if (type == DType::kI8) w.scale = random.Floats(DType::kF32, {rows}, size / 64);
    w.packed = Copy(w.stored);
    w.matrix = {w.packed.view, w.scale.view, rows, cols, false};
    backend_->Pack(w.matrix);
    return w;
  }
  static std::vector<double> Row(const Owned& x, int64_t row) {
    std::vector<double> values;
    const int64_t width = x.view.shape.row_elements();
    for (int64_t i = 0; i < width; ++i) values.push_back(x.at(row * width + i));
    return values;
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({2, GetParam()});
};

struct Worst {
  void Add(double got, double known) {
    const double off = std::abs(got - known);
    if (!(off <= difference)) difference = std::isnan(off) ? INFINITY : off;
    largest = std::max(largest, std::abs(known));
  }
  double relative() const { return difference / largest; }
  double difference = 0, largest = 1e-30;
};

TEST_P(LayerContractTest, ProductsAreTheirFormula) {
  Random random(1);
  for (const DType type : {DType::kBF16, DType::kI8}) {
    for (const DType act : {DType::kF32, DType::kBF16}) {
      for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                    {1, 31, 7},
                                    {2, 47, 129},
                                    {7, 100, 33},
                                    {25, 17, 64}}) {
        const Weights w = Make(random, type, n, k);
        const Owned x = random.Floats(act, {m, k});
        const Owned out(DType::kF32, {m, n});
        kernels().MatMul({x.view, &w.matrix, out.view, Epilogue::kSilu});
        Worst worst;
        for (int64_t t = 0; t < m; ++t) {
          const std::vector<double> y = w.Times(Row(x, t));
          for (int64_t i = 0; i < n; ++i) worst.Add(out.at(t * n + i), Silu(y[i]));
        }
        EXPECT_LE(worst.relative(), kClose) << m << " x " << n << " x " << k << ' ' << Name(type);
      }
    }
  }
}

TEST_P(LayerContractTest, AnyNumberOfExpertsIsTheirFormula) {
  struct Case {
    int64_t experts, chosen, tokens, hidden, width;
  };
  for (const auto& c : {Case{2, 1, 1, 16, 16},
                        {2, 2, 9, 33, 20},
                        {3, 2, 1, 50, 17},
                        {8, 3, 12, 31, 16},
                        {16, 4, 5, 48, 15},
                        {64, 1, 40, 17, 33},
                        {64, 4, 40, 32, 9}}) {
    for (const DType type : {DType::kBF16, DType::kI8}) {
      for (const DType act : {DType::kF32, DType::kBF16}) {
        Random random(static_cast<uint32_t>(c.experts * 10 + c.chosen));
        std::vector<Weights> w1, w3, w2;
        std::vector<WeightMatrix> m1, m3, m2;
        for (int64_t e = 0; e < c.experts; ++e) {
          m1.push_back(w1.emplace_back(Make(random, type, c.width, c.hidden)).matrix);
          m3.push_back(w3.emplace_back(Make(random, type, c.width, c.hidden)).matrix);
          m2.push_back(w2.emplace_back(Make(random, type, c.hidden, c.width)).matrix);
        }
        const Owned x = random.Floats(act, {c.tokens, c.hidden});
        const Owned gate = random.Floats(DType::kF32, {c.experts, c.hidden});
        Owned wide(DType::kF32, x.view.shape);
        for (int64_t i = 0; i < x.view.elements(); ++i) wide.view.as<float>()[i] = x.at(i);
        const Owned logits(DType::kF32, {c.tokens, c.experts});
        const Owned experts(DType::kI32, {c.tokens, c.chosen});
        const Owned weights(DType::kF32, {c.tokens, c.chosen});
        kernels().RouteExperts(
            {wide.view, gate.view, false, logits.view, experts.view, weights.view});
        const Owned hidden(act, {c.tokens * c.chosen, c.width});
        const Owned order(DType::kI32, {2 * c.tokens * c.chosen + c.experts + 1});
        const Owned out(DType::kF32, {c.tokens, c.hidden});
        kernels().ExpertMatMul(
            {x.view, m1, m3, m2, experts.view, weights.view, hidden.view, order.view, out.view});
        Worst worst;
        for (int64_t t = 0; t < c.tokens; ++t) {
          std::vector<double> sum(static_cast<size_t>(c.hidden), 0.0);
          std::vector<int32_t> seen;
          double total = 0;
          for (int64_t i = 0; i < c.chosen; ++i) {
            const int32_t e = experts.view.as<int32_t>()[t * c.chosen + i];
            EXPECT_EQ(0, std::count(seen.begin(), seen.end(), e)) << "an expert chosen twice";
            seen.push_back(e);
            const double weight = weights.at(t * c.chosen + i);
            total += weight;
            std::vector<double> a = w1[e].Times(Row(x, t));
            const std::vector<double> b = w3[e].Times(Row(x, t));
            for (size_t j = 0; j < a.size(); ++j) a[j] = Silu(a[j]) * b[j];
            const std::vector<double> y = w2[e].Times(a);
            for (size_t j = 0; j < sum.size(); ++j) sum[j] += weight * y[j];
          }
          EXPECT_NEAR(total, 1, 1e-6);
          for (int64_t j = 0; j < c.hidden; ++j) worst.Add(out.at(t * c.hidden + j), sum[j]);
        }
        EXPECT_LE(worst.relative(), act == DType::kF32 ? kClose : kOneRounding)
            << c.experts << " experts, " << c.chosen << " chosen, " << Name(type) << ' '
            << Name(act);
      }
    }
  }
}

TEST_P(LayerContractTest, NormsAndGatesAreTheirFormula) {
  Random random(3);
  for (const int64_t n : {1, 2, 15, 16, 17, 50, 129}) {
    const Owned residual = random.Floats(DType::kF32, {2, n});
    const Owned update = random.Floats(DType::kF32, {2, n});
    const Owned weight = random.Floats(DType::kF32, {n});
    const Owned sum(DType::kF32, {2, n}), normed(DType::kF32, {2, n});
    kernels().RmsNorm({residual.view, update.view, 2.5f, 0.5f, weight.view, 1e-5f, sum.view,
                       normed.view, normed.view});
    const Owned squares(DType::kF32, {2}), gated(DType::kF32, {2, n});
    const Owned gate = Copy(residual);  // overwritten
    kernels().SumSquares({update.view, squares.view});
    kernels().GateNorm(
        {update.view, gate.view, squares.view, 3 * n, weight.view, 1e-6f, gated.view});
    Worst norms, gates;
    for (int64_t t = 0; t < 2; ++t) {
      std::vector<double> x(static_cast<size_t>(n));
      double of_sum = 0, of_update = 0;
      for (int64_t i = 0; i < n; ++i) {
        x[i] = 2.5 * residual.at(t * n + i) + 0.5 * update.at(t * n + i);
        of_sum += x[i] * x[i];
        of_update += double{update.at(t * n + i)} * update.at(t * n + i);
      }
      const double norm = 1 / std::sqrt(of_sum / static_cast<double>(n) + 1e-5);
      const double inner = 1 / std::sqrt(of_update / static_cast<double>(3 * n) + 1e-6);
      for (int64_t i = 0; i < n; ++i) {
        norms.Add(normed.at(t * n + i), weight.at(i) * x[i] * norm);
        gates.Add(gated.at(t * n + i), weight.at(i) * update.at(t * n + i) * inner /
                                           (1 + std::exp(-double{residual.at(t * n + i)})));
      }
    }
    EXPECT_LE(norms.relative(), kClose) << n;
    EXPECT_LE(gates.relative(), kClose) << n;
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
INSTANTIATE_TEST_SUITE_P(Paths, LayerContractTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
