// A network of two layers, one of each attention, with one head of 16: small enough for a prompt of
// a million tokens, and for a program in double beside it. Its weights come from a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace levin::testing {

// Row-major, exactly the values of the file.
struct LongMatrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;

  std::vector<double> Times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(rows), 0.0);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) y[r] += values[r * cols + c] * x[c];
    return y;
  }
};

class LongModel final {
 public:
  static constexpr int64_t kHidden = 32, kDim = 16, kRotary = 8, kExperts = 4, kChosen = 2;
  static constexpr int64_t kWidth = 32, kVocab = 96;
  // Each another number, so that none can stand for another.
  static constexpr double kLightningAlpha = 1.5, kLightningBeta = 0.75;
  static constexpr double kSoftmaxAlpha = 0.5, kSoftmaxBeta = 2.0;
  static constexpr double kMlpAlpha = 1.25, kMlpBeta = 0.5;
  static constexpr double kTheta = 1e7;

  explicit LongModel(uint64_t seed);

  const LongMatrix& operator[](const std::string& name) const { return weights_.at(name); }
  // Of layer 0 or 1: "input_layernorm.weight", ...
  const LongMatrix& Layer(int layer, const std::string& name) const {
    return weights_.at("model.layers." + std::to_string(layer) + "." + name);
  }

  // config.json and model.safetensors.
  void Write(const std::filesystem::path& folder) const;

  static std::vector<int32_t> Prompt(int64_t tokens);

 private:
  std::map<std::string, LongMatrix> weights_;
};

// The logits of the last `count` positions, by the definition of the network (model.md) in double.
// Time and memory are linear in the prompt: of the second layer only these positions ask.
struct LongAnswer {
  std::vector<std::vector<double>> logits;  // [count][vocabulary]
  double router_margin = 0;         // smallest gap between chosen and rejected, of these positions
  double tokens_seen = 0;           // 1 / sum of squared weights of the last position's attention
  double weight_of_first_half = 0;  // that it gives to the first half of the prompt
};
LongAnswer AnswerInDouble(const LongModel& model, const std::vector<int32_t>& prompt,
                          int64_t count);

}  // namespace levin::testing
