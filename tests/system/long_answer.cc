// The network of LongModel in double, from the formulas of the specification: one pass over the
// prompt, then the last positions alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tests/system/long_model.h"

namespace levin::testing {
namespace {

using Vector = std::vector<double>;
constexpr int64_t kDim = LongModel::kDim;

Vector Norm(const Vector& x, const LongMatrix& weight, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = weight.values[i] * x[i] * scale;
  return y;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Vector Sum(double alpha, const Vector& x, double beta, const Vector& y) {
  Vector sum(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum[i] = alpha * x[i] + beta * y[i];
  return sum;
}

class Network final {
 public:
  explicit Network(const LongModel& model) : model_(model) {}

  // The sum behind layer 0 of one more token.
  Vector LightningLayer(int32_t id) {
    const LongMatrix& table = model_["model.embed_tokens.weight"];
    const auto row = table.values.begin() + id * LongModel::kHidden;
    const Vector y = Norm(Vector(row, row + LongModel::kHidden),
                          model_.Layer(0, "input_layernorm.weight"), kEps);
    return Experts(0, Sum(LongModel::kLightningAlpha, y, LongModel::kLightningBeta, Lightning(y)));
  }

  // z = norm(x); alpha z + beta experts(z)
  Vector Experts(int layer, const Vector& x) {
    const Vector z = Norm(x, model_.Layer(layer, "post_attention_layernorm.weight"), kEps);
    const Vector logits = model_.Layer(layer, "block_sparse_moe.gate.weight").Times(z);
    std::array<size_t, LongModel::kExperts> order;
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    margin = logits[order[LongModel::kChosen - 1]] - logits[order[LongModel::kChosen]];
    double total = 0;
    for (int64_t i = 0; i < LongModel::kChosen; ++i) total += std::exp(logits[order[i]]);
    Vector sum(LongModel::kHidden, 0.0);
    for (int64_t i = 0; i < LongModel::kChosen; ++i) {
      const std::string expert = "block_sparse_moe.experts." + std::to_string(order[i]) + ".";
      Vector hidden = model_.Layer(layer, expert + "w1.weight").Times(z);
      const Vector other = model_.Layer(layer, expert + "w3.weight").Times(z);
      for (size_t j = 0; j < hidden.size(); ++j) hidden[j] *= Sigmoid(hidden[j]) * other[j];
      sum = Sum(1, sum, std::exp(logits[order[i]]) / total,
                model_.Layer(layer, expert + "w2.weight").Times(hidden));
    }
    return Sum(LongModel::kMlpAlpha, z, LongModel::kMlpBeta, sum);
  }

  // Of layer 1: the layer's input, then "q_proj", "k_proj", "v_proj" of it, rotated if asked.
  Vector SoftmaxInput(const Vector& x) const {
    return Norm(x, model_.Layer(1, "input_layernorm.weight"), kEps);
  }
  Vector Projected(const char* which, const Vector& y, int64_t position) const {
    Vector out = model_.Layer(1, "self_attn." + std::string(which) + ".weight").Times(y);
    if (which[0] != 'v') Rotate(out, position);
    return out;
  }
  Vector Logits(const Vector& y, const Vector& mixed) {
    const Vector update = model_.Layer(1, "self_attn.o_proj.weight").Times(mixed);
    const Vector x = Experts(1, Sum(LongModel::kSoftmaxAlpha, y, LongModel::kSoftmaxBeta, update));
    return model_["lm_head.weight"].Times(Norm(x, model_["model.norm.weight"], kEps));
  }

  double margin = 0;  // of the last decision

 private:
  static constexpr double kEps = 1e-5, kInnerEps = 1e-6;

  Vector Lightning(const Vector& y) {
    Vector qkv = model_.Layer(0, "self_attn.qkv_proj.weight").Times(y);
    for (double& value : qkv) value *= Sigmoid(value);
    const double *q = qkv.data(), *k = q + kDim, *v = k + kDim;
    Vector o(kDim, 0.0);
    for (int64_t a = 0; a < kDim; ++a) {
      for (int64_t b = 0; b < kDim; ++b) {
        double& s = state_[a * kDim + b];
        s = decay_ * s + k[a] * v[b];
        o[b] += q[a] * s;
      }
    }
    Vector n = Norm(o, model_.Layer(0, "self_attn.norm.weight"), kInnerEps);
    const Vector gate = model_.Layer(0, "self_attn.output_gate.weight").Times(y);
    for (int64_t i = 0; i < kDim; ++i) n[i] *= Sigmoid(gate[i]);
    return model_.Layer(0, "self_attn.out_proj.weight").Times(n);
  }

  // Frequencies and angles are rounded to fp32: that is part of the definition.
  static void Rotate(Vector& head, int64_t position) {
    constexpr int64_t kHalf = LongModel::kRotary / 2;
    for (int64_t j = 0; j < kHalf; ++j) {
      const auto exponent = static_cast<float>(2 * j) / static_cast<float>(LongModel::kRotary);
      const auto power = static_cast<float>(std::pow(LongModel::kTheta, double{exponent}));
      const float angle = static_cast<float>(position) * (1.0f / power);
      const double cosine = std::cos(double{angle}), sine = std::sin(double{angle});
      const double a = head[j], b = head[j + kHalf];
      head[j] = a * cosine - b * sine;
      head[j + kHalf] = b * cosine + a * sine;
    }
  }

  const LongModel& model_;
  // One head: 2^-8; the first of two layers: 1 + 1e-5.
  const double decay_ = std::exp(-std::exp2(-8) * (1 + 1e-5));
  Vector state_ = Vector(kDim * kDim, 0.0);
};

}  // namespace

LongAnswer AnswerInDouble(const LongModel& model, const std::vector<int32_t>& prompt,
                          int64_t count) {
  const auto tokens = static_cast<int64_t>(prompt.size());
  Network network(model);
  LongAnswer answer;
  answer.router_margin = 1e9;
  Vector keys, values;
  std::vector<Vector> inputs;  // of the last positions
  for (int64_t t = 0; t < tokens; ++t) {
    const Vector y = network.SoftmaxInput(network.LightningLayer(prompt[t]));
    const Vector key = network.Projected("k_proj", y, t);
    const Vector value = network.Projected("v_proj", y, t);
    keys.insert(keys.end(), key.begin(), key.end());
    values.insert(values.end(), value.begin(), value.end());
    if (t < tokens - count) continue;
    inputs.push_back(y);
    answer.router_margin = std::min(answer.router_margin, network.margin);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t position = tokens - static_cast<int64_t>(inputs.size() - i);
    const Vector query = network.Projected("q_proj", inputs[i], position);
    Vector weights(position + 1);
    double best = -1e300, total = 0, first_half = 0, squares = 0;
    for (int64_t j = 0; j <= position; ++j) {
      double score = 0;
      for (int64_t d = 0; d < kDim; ++d) score += query[d] * keys[j * kDim + d];
      weights[j] = score / std::sqrt(static_cast<double>(kDim));
      best = std::max(best, weights[j]);
    }
    Vector mixed(kDim, 0.0);
    for (int64_t j = 0; j <= position; ++j) {
      const double weight = std::exp(weights[j] - best);
      total += weight;
      squares += weight * weight;
      if (j < tokens / 2) first_half += weight;
      for (int64_t d = 0; d < kDim; ++d) mixed[d] += weight * values[j * kDim + d];
    }
    for (double& value : mixed) value /= total;
    answer.logits.push_back(network.Logits(inputs[i], mixed));
    answer.router_margin = std::min(answer.router_margin, network.margin);
    answer.tokens_seen = total * total / squares;
    answer.weight_of_first_half = first_half / total;
  }
  return answer;
}

}  // namespace levin::testing
