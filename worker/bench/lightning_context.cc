#include "worker/bench/lightning_context.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <deque>

#include "worker/bench/random_tensor.h"
#include "worker/bench/step_rows.h"

namespace levin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kHeads = 2, kDim = 128;
constexpr int64_t kChunk = 256;
constexpr int64_t kFirstContext = 1024;
constexpr size_t kWindow = 4;    // chunks: all that the first context has
constexpr int kDecodeRuns = 64;  // single tokens timed at each context

// A sequence that grows: one head slow to forget, one quick.
class Sequence final {
 public:
  Sequence(int threads, CpuPath path) : backend_(MakeCpuBackend({threads, path})) {}

  int64_t length() const { return length_; }

  // Nanoseconds per token of one chunk.
  double Prefill() {
    const double ns = Run(states_, length_, kChunk, false);
    length_ += kChunk;
    return ns / kChunk;
  }
  // Of the next token, were it decoded. The sequence stays as it is.
  double Decode() {
    std::copy(states_.view.span().begin(), states_.view.span().end(), copy_.view.data);
    return Run(copy_, length_, 1, true);
  }

 private:
  double Run(const OwnedTensor& states, int64_t at, int64_t tokens, bool stepwise) {
    StepRows rows;
    rows.Add(at, tokens, 0, stepwise);
    constexpr std::array<double, kHeads> kSlopes = {1e-6, 0.5};
    const int64_t first = at % kInputs / kChunk * kChunk;
    const LightningAttentionArgs args{
        qkv_.view.Rows(first, tokens), rows.table(), states.view, 0, kSlopes,
        out_.view.Rows(0, tokens)};
    const auto start = Clock::now();
    backend_->kernels().LightningAttention(args);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }

  static constexpr int64_t kInputs = 16 * kChunk;
  const std::unique_ptr<Backend> backend_;
  const OwnedTensor qkv_ = RandomTensor(DType::kF32, {kInputs, kHeads, 3 * kDim});
  const OwnedTensor out_ = EmptyTensor(DType::kF32, {kChunk, kHeads, kDim});
  const OwnedTensor states_ = EmptyTensor(DType::kF32, {1, 1, kHeads, kDim* kDim});
  const OwnedTensor copy_ = EmptyTensor(DType::kF32, {1, 1, kHeads, kDim* kDim});
  int64_t length_ = 0;
};

struct Samples {
  int64_t context;
  std::vector<double> prefill, decode;
};

// What others do on the same cores only ever takes away.
double Best(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void RunOnce(Sequence& sequence, std::vector<Samples>& all) {
  std::deque<double> last;
  for (Samples& samples : all) {
    while (sequence.length() < samples.context) {
      last.push_back(sequence.Prefill());
      if (last.size() > kWindow) last.pop_front();
    }
    samples.prefill.insert(samples.prefill.end(), last.begin(), last.end());
    for (int i = 0; i < kDecodeRuns; ++i) samples.decode.push_back(sequence.Decode());
  }
}

}  // namespace

std::vector<LightningCost> MeasureLightningContext(int threads, CpuPath path, int64_t tokens,
                                                   int rounds) {
  std::vector<Samples> all;
  for (int64_t context = kFirstContext; context <= tokens; context *= 4) {
    all.push_back({context, {}, {}});
  }
  for (int i = 0; i < rounds; ++i) {
    Sequence sequence(threads, path);
    RunOnce(sequence, all);
  }
  std::vector<LightningCost> costs;
  for (const Samples& samples : all) {
    costs.push_back({samples.context, Best(samples.prefill), Best(samples.decode)});
  }
  return costs;
}

std::string LightningContextTable(const std::vector<LightningCost>& costs) {
  std::string text = "| context | prefill, ns a token | decode, ns a token |\n|---|---|---|\n";
  for (const LightningCost& cost : costs) {
    std::array<char, 128> line;
    std::snprintf(line.data(), line.size(), "| %lld | %.0f | %.0f |\n",
                  static_cast<long long>(cost.context), cost.prefill_ns, cost.decode_ns);
    text += line.data();
  }
  return text;
}

std::string LightningContextJson(const std::vector<LightningCost>& costs) {
  boost::json::array points;
  for (const LightningCost& cost : costs) {
    points.push_back(boost::json::object{{"context", cost.context},
                                         {"prefill_ns_per_token", cost.prefill_ns},
                                         {"decode_ns_per_token", cost.decode_ns}});
  }
  return boost::json::serialize(
      boost::json::object{{"heads", kHeads}, {"head_dim", kDim}, {"points", std::move(points)}});
}

}  // namespace levin
