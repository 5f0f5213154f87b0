// Both attentions against their formulas in double, for prompts around every edge of a block, cut
// into chunks in several ways, with one head and with sixty-four; every path of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

constexpr double kClose = 1e-5;  // of the largest value: fp32 sums beside double

std::vector<int64_t> EdgeLengths() {
  std::vector<int64_t> lengths = {1, 2, 3};
  for (const int64_t edge : {64, 128, 192, 256, 512, 1024}) {
    for (const int64_t length : {edge - 1, edge, edge + 1}) lengths.push_back(length);
  }
  return lengths;
}

// Where a prompt of `length` is cut: [from, to).
std::vector<std::pair<int64_t, int64_t>> Chunks(int64_t length, int64_t chunk) {
  std::vector<std::pair<int64_t, int64_t>> chunks;
  for (int64_t at = 0; at < length; at += chunk) {
    chunks.emplace_back(at, std::min(length, at + chunk));
  }
  return chunks;
}

Owned Part(const Owned& whole, int64_t from, int64_t to) {
  Owned part;
  part.view = whole.view.Rows(from, to - from);
  return part;
}

double Worst(const Owned& got, const std::vector<double>& known) {
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < known.size(); ++i) {
    const double difference = std::abs(got.at(static_cast<int64_t>(i)) - known[i]);
    if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
    largest = std::max(largest, std::abs(known[i]));
  }
  return worst / largest;
}

struct Heads {
  int64_t query, kv, dim;
};

class AttentionContractTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  Kernels& kernels() { return backend_->kernels(); }
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({2, GetParam()});
};

// softmax(q k / sqrt(d)) v of the definition.
std::vector<double> SoftmaxInDouble(const Owned& q, const Owned& k, const Owned& v, Heads heads) {
  const int64_t tokens = q.view.shape[0], d = heads.dim;
  std::vector<double> out(static_cast<size_t>(tokens * heads.query * d), 0.0);
  std::vector<double> weights(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads.query; ++h) {
      const int64_t g = h / (heads.query / heads.kv);
      double best = -1e300, total = 0;
      for (int64_t j = 0; j <= t; ++j) {
        double score = 0;
        for (int64_t i = 0; i < d; ++i) {
          score += double{q.at((t * heads.query + h) * d + i)} * k.at((j * heads.kv + g) * d + i);
        }
        weights[j] = score / std::sqrt(static_cast<double>(d));
        best = std::max(best, weights[j]);
      }
      for (int64_t j = 0; j <= t; ++j) total += weights[j] = std::exp(weights[j] - best);
      double* o = out.data() + (t * heads.query + h) * d;
      for (int64_t j = 0; j <= t; ++j) {
        for (int64_t i = 0; i < d; ++i) {
          o[i] += weights[j] / total * v.at((j * heads.kv + g) * d + i);
        }
      }
    }
  }
  return out;
}

TEST_P(AttentionContractTest, PagedAttentionIsItsFormulaAroundEveryBlockEdge) {
  const auto check = [&](int64_t length, Heads heads, DType kv_type, int64_t chunk) {
    Random random(static_cast<uint32_t>(length));
    const Owned query = random.Floats(DType::kF32, {length, heads.query, heads.dim});
    // Rounded beforehand: the formula sees what a bf16 cache holds.
    const Owned keys = random.Floats(kv_type, {length, heads.kv, heads.dim});
    const Owned values = random.Floats(kv_type, {length, heads.kv, heads.dim});
    Owned wide_keys(DType::kF32, keys.view.shape), wide_values(DType::kF32, keys.view.shape);
    for (int64_t i = 0; i < keys.view.elements(); ++i) {
      wide_keys.view.as<float>()[i] = keys.at(i);
      wide_values.view.as<float>()[i] = values.at(i);
    }
    const auto blocks = static_cast<int32_t>((length + kKvBlockTokens - 1) / kKvBlockTokens);
    std::vector<int32_t> places;  // back to front
    for (int32_t block = blocks; block > 0; --block) places.push_back(block - 1);
    const Owned cache(kv_type, {blocks, 2, heads.kv, kKvBlockTokens * heads.dim});
    const Owned out(DType::kF32, {length, heads.query, heads.dim});
    for (const auto& [from, to] : Chunks(length, chunk)) {
      TestRows rows;
      rows.Add(from, to - from, 0, false, places);
      const Owned pieces(DType::kI32, {to - from});
      kernels().StoreKv({wide_keys.view.Rows(from, to - from),
                         wide_values.view.Rows(from, to - from), rows.table(), cache.view, 0});
      kernels().PagedAttention({query.view.Rows(from, to - from), rows.table(), cache.view, 0,
                                heads.kv, pieces.view, out.view.Rows(from, to - from)});
    }
    EXPECT_LE(Worst(out, SoftmaxInDouble(query, wide_keys, wide_values, heads)), kClose)
        << length << " tokens in chunks of " << chunk << ", " << heads.query << " heads of "
        << heads.dim << ", " << Name(kv_type);
  };
  for (const int64_t length : EdgeLengths()) {
    for (const int64_t chunk : {length, int64_t{64}, int64_t{100}}) {
      check(length, {2, 1, 16}, length % 2 == 0 ? DType::kF32 : DType::kBF16, chunk);
    }
  }
  for (const int64_t length : {1, 65}) {
    check(length, {1, 1, 20}, DType::kF32, 1);
    check(length, {64, 8, 16}, DType::kF32, 64);
    check(length, {64, 1, 24}, DType::kBF16, 17);
    check(length, {64, 64, 7}, DType::kF32, 64);
  }
}

// S = e^(-s) S + k^T v; o = q S of the definition. Returns the outputs; the states come after them.
std::vector<double> RecurrenceInDouble(const Owned& qkv, int64_t heads, int64_t d,
                                       const std::vector<double>& slopes) {
  const int64_t tokens = qkv.view.shape[0];
  std::vector<double> out(static_cast<size_t>(tokens * heads * d), 0.0);
  std::vector<double> states(static_cast<size_t>(heads * d * d), 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t at = (t * heads + h) * 3 * d;
      const double decay = std::exp(-slopes[h]);
      for (int64_t i = 0; i < d; ++i) {
        for (int64_t j = 0; j < d; ++j) {
          double& s = states[(h * d + i) * d + j];
          s = decay * s + double{qkv.at(at + d + i)} * qkv.at(at + 2 * d + j);
          out[(t * heads + h) * d + j] += qkv.at(at + i) * s;
        }
      }
    }
  }
  out.insert(out.end(), states.begin(), states.end());
  return out;
}

TEST_P(AttentionContractTest, LightningAttentionIsItsRecurrenceAroundEveryBlockEdge) {
  const auto check = [&](int64_t length, int64_t heads, int64_t dim, int64_t chunk, bool stepwise) {
    Random random(static_cast<uint32_t>(length + 1));
    const Owned qkv = random.Floats(DType::kF32, {length, heads, 3 * dim});
    std::vector<double> slopes;
    for (int64_t h = 0; h < heads; ++h) {
      slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
    }
    const Owned states(DType::kF32, {1, 1, heads, dim * dim});
    const Owned out(DType::kF32, {length, heads, dim});
    for (const auto& [from, to] : Chunks(length, chunk)) {
      TestRows rows;
      rows.Add(from, to - from, 0, stepwise);
      kernels().LightningAttention({Part(qkv, from, to).view, rows.table(), states.view, 0, slopes,
                                    Part(out, from, to).view});
    }
    const std::vector<double> known = RecurrenceInDouble(qkv, heads, dim, slopes);
    const auto outputs = known.begin() + out.view.elements();
    EXPECT_LE(Worst(out, {known.begin(), outputs}), kClose)
        << length << " tokens in chunks of " << chunk << ", " << heads << " heads of " << dim;
    EXPECT_LE(Worst(states, {outputs, known.end()}), kClose) << length << " in " << chunk;
  };
  for (const int64_t length : EdgeLengths()) {
    for (const int64_t chunk : {length, int64_t{64}, int64_t{100}}) {
      check(length, 2, 16, chunk, false);
    }
    check(length, 1, 16, length, true);
  }
  for (const int64_t length : {1, 65}) {
    check(length, 64, 16, 64, false);
    check(length, 64, 7, 10, false);
    check(length, 1, 48, 1, true);
  }
}

// A layer with its heads in another order, in all that belongs to a head: the same layer.
TEST_P(AttentionContractTest, ALightningLayerDoesNotKnowTheOrderOfItsHeads) {
  constexpr int64_t kTokens = 70, kHeads = 6, kDim = 16, kWidth = kHeads * kDim;
  constexpr int64_t kOrder[kHeads] = {4, 1, 5, 0, 3, 2};
  Random random(5);
  const Owned qkv = random.Floats(DType::kF32, {kTokens, kHeads, 3 * kDim});
  const Owned gate = random.Floats(DType::kF32, {kTokens, kWidth});
  const Owned norm = random.Floats(DType::kF32, {kWidth});
  const Owned projection = random.Floats(DType::kBF16, {40, kWidth}, 0.1f);
  const std::vector<double> slopes = {0.9, 0.5, 0.1, 0.02, 0.003, 4.9e-5};
  const auto layer = [&](bool permuted) {
    // Element i of `width` values per head, in the order asked for.
    const auto ordered = [&](const Owned& from, int64_t rows, int64_t width) {
      Owned to(from.view.dtype, from.view.shape);
      const auto bytes = static_cast<size_t>(width * ByteSize(from.view.dtype));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t h = 0; h < kHeads; ++h) {
          const int64_t source = row * kHeads + (permuted ? kOrder[h] : h);
          std::copy_n(from.view.data + source * bytes, bytes,
                      to.view.data + (row * kHeads + h) * bytes);
        }
      }
      return to;
    };
    std::vector<double> decays(kHeads);
    for (int64_t h = 0; h < kHeads; ++h) decays[h] = slopes[permuted ? kOrder[h] : h];
    const Owned inputs = ordered(qkv, kTokens, 3 * kDim);
    const Owned gates = ordered(gate, kTokens, kDim);
    const Owned weights = ordered(norm, 1, kDim);
    const Owned columns = ordered(projection, 40, kDim);
    const Owned states(DType::kF32, {1, 1, kHeads, kDim * kDim});
    const Owned heads(DType::kF32, {kTokens, kHeads, kDim});
    TestRows rows;
    rows.Add(0, kTokens, 0);
    kernels().LightningAttention({inputs.view, rows.table(), states.view, 0, decays, heads.view});
    TensorView flat = heads.view;
    flat.shape = {kTokens, kWidth};
    const Owned squares(DType::kF32, {kTokens});
    const Owned mixed(DType::kF32, {kTokens, kWidth});
    kernels().SumSquares({flat, squares.view});
    kernels().GateNorm({flat, gates.view, squares.view, kWidth, weights.view, 1e-6f, mixed.view});
    WeightMatrix matrix{columns.view, {}, 40, kWidth, false};
    backend_->Pack(matrix);
    Owned out(DType::kF32, {kTokens, 40});
    kernels().MatMul({mixed.view, &matrix, out.view, Epilogue::kNone});
    return out;
  };
  EXPECT_LE(RelativeDifference(layer(true), layer(false)), 1e-6);
}

std::vector<CpuPath> AllPaths() {
  std::vector<CpuPath> paths = FastPaths();
  paths.push_back(CpuPath::kPlain);
  return paths;
}
std::string PathName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(Name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Paths, AttentionContractTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
