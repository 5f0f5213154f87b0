// Tokens per second of one rank's network on this machine, beside the memory bandwidth of the same
// moment: random weights in given sizes, or a model folder.
//
//   network_bench [--model DIR] [--hidden N] [--width N] [--layers N] [--vocab N] [--int8]
//                 [--threads N] [--float32]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "worker/backend/cpu/cpu_backend.h"
#include "worker/comm/local_collective.h"
#include "worker/model/hybrid_model.h"
#include "worker/tensor/bf16.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

using Clock = std::chrono::steady_clock;
double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

struct Options {
  std::string model;
  int hidden = 1024, width = 1536, layers = 8, vocab = 32000, threads = 1;
  bool int8 = false, float32 = false;
};

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--int8") o.int8 = true;
    if (flag == "--float32") o.float32 = true;
    if (i + 1 == argc) break;
    if (flag == "--model") o.model = argv[i + 1];
    if (flag == "--hidden") o.hidden = std::atoi(argv[i + 1]);
    if (flag == "--width") o.width = std::atoi(argv[i + 1]);
    if (flag == "--layers") o.layers = std::atoi(argv[i + 1]);
    if (flag == "--vocab") o.vocab = std::atoi(argv[i + 1]);
    if (flag == "--threads") o.threads = std::atoi(argv[i + 1]);
  }
  return o;
}

ModelConfig MakeConfig(const Options& o) {
  ModelConfig c;
  c.layers = o.layers;
  for (int l = 0; l < o.layers; ++l) {
    c.layer_kinds.push_back(l % 8 == 7 ? LayerKind::kSoftmax : LayerKind::kLightning);
  }
  c.hidden = o.hidden;
  c.head_dim = 128;
  c.heads = o.hidden / 128;
  c.kv_heads = std::max(1, c.heads / 8);
  c.rotary_dim = 64;
  c.rope_theta = 1e7;
  c.experts = 8;
  c.experts_per_token = 2;
  c.expert_width = o.width;
  c.vocab = o.vocab;
  c.rms_norm_eps = 1e-5f;
  c.lightning = c.softmax = c.mlp = {2.0, 1.0};
  return c;
}

class WeightMaker final {
 public:
  TensorView Make(DType dtype, const Shape& shape, float scale) {
    weights_.buffers.emplace_back(dtype, shape);
    const TensorView view = weights_.buffers.back().View(dtype, shape);
    for (int64_t i = 0; i < view.elements(); ++i) {
      seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
      const float value = (static_cast<float>(seed_ >> 40) * 0x1p-23f - 1.0f) * scale;
      if (dtype == DType::kF32) view.as<float>()[i] = value;
      if (dtype == DType::kBF16) view.as<uint16_t>()[i] = FloatToBf16(value);
      if (dtype == DType::kI8) view.as<int8_t>()[i] = static_cast<int8_t>(seed_ >> 57);
    }
    return view;
  }
  TensorView Ones(int64_t n) {
    const TensorView view = Make(DType::kF32, {n}, 0);
    std::fill_n(view.as<float>(), n, 1.0f);
    return view;
  }

  ModelWeights Run(const ModelConfig& c, bool int8) {
    const int64_t h = c.hidden, hd = c.heads * c.head_dim, gd = c.kv_heads * c.head_dim;
    const int64_t e = c.experts, w = c.expert_width;
    const float scale = 1.0f / std::sqrt(static_cast<float>(h));
    weights_.embedding = Make(DType::kBF16, {c.vocab, h}, 1);
    weights_.head = Make(DType::kBF16, {c.vocab, h}, scale);
    weights_.final_norm = Ones(h);
    for (int l = 0; l < c.layers; ++l) {
      LayerWeights layer;
      layer.input_norm = Ones(h);
      layer.post_attention_norm = Ones(h);
      if (c.layer_kinds[l] == LayerKind::kLightning) {
        layer.qkv = Make(DType::kBF16, {3 * hd, h}, scale);
        layer.output_gate = Make(DType::kBF16, {hd, h}, scale);
        layer.lightning_norm = Ones(hd);
        layer.out = Make(DType::kBF16, {h, hd}, scale);
      } else {
        layer.q = Make(DType::kBF16, {hd, h}, scale);
        layer.k = Make(DType::kBF16, {gd, h}, scale);
        layer.v = Make(DType::kBF16, {gd, h}, scale);
        layer.o = Make(DType::kBF16, {h, hd}, scale);
      }
      layer.gate = Make(DType::kF32, {e, h}, scale);
      const DType expert = int8 ? DType::kI8 : DType::kBF16;
      layer.w13 = Make(expert, {e, 2 * w, h}, scale);
      layer.w2 = Make(expert, {e, h, w}, scale);
      if (int8) {
        layer.w13_scale = Make(DType::kF32, {e, 2 * w}, scale / 64);
        layer.w2_scale = Make(DType::kF32, {e, h}, scale / 64);
      }
      weights_.layers.push_back(layer);
    }
    return std::move(weights_);
  }

 private:
  ModelWeights weights_;
  uint64_t seed_ = 1;
};

// Bytes of weights that one token's forward pass reads (embedding aside).
int64_t BytesPerToken(const ModelConfig& c, const ModelWeights& w) {
  int64_t bytes = w.head.bytes();
  for (const LayerWeights& l : w.layers) {
    for (const TensorView* t : {&l.qkv, &l.output_gate, &l.out, &l.q, &l.k, &l.v, &l.o, &l.gate}) {
      bytes += t->bytes();
    }
    bytes += (l.w13.bytes() + l.w2.bytes()) / c.experts * c.experts_per_token;
  }
  return bytes;
}

// Reads 256 MiB with every thread; GB/s.
double ReadBandwidth(int threads) {
  const int64_t bytes = int64_t{256} << 20;
  static std::vector<uint64_t> memory(bytes / 8, 1);
  const auto start = Clock::now();
  std::vector<std::thread> all;
  std::vector<uint64_t> sums(threads * 8);
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const size_t share = memory.size() / threads;
      const uint64_t* p = memory.data() + t * share;
      uint64_t s[8] = {};
      for (size_t i = 0; i + 8 <= share; i += 8) {
        for (int j = 0; j < 8; ++j) s[j] ^= p[i + j];
      }
      for (int j = 0; j < 8; ++j) sums[t * 8] += s[j];
    });
  }
  for (auto& thread : all) thread.join();
  return static_cast<double>(bytes) / Seconds(start) * 1e-9;
}

StepBatch Step(int rows, int64_t position, int64_t tokens, int vocab, bool logits_at_end) {
  StepBatch b;
  b.row_first.push_back(0);
  b.block_first.push_back(0);
  for (int r = 0; r < rows; ++r) {
    for (int64_t t = 0; t < tokens; ++t) {
      b.tokens.push_back(static_cast<TokenId>((r * 977 + (position + t) * 131) % vocab));
    }
    b.row_first.push_back(b.token_count());
    b.row_position.push_back(position);
    b.row_slot.push_back(r);
    b.row_fresh.push_back(position == 0);
    b.row_stepwise.push_back(tokens == 1);
    for (int i = 0; i < 40; ++i) b.block_ids.push_back(r * 40 + i);
    b.block_first.push_back(static_cast<int32_t>(b.block_ids.size()));
    if (logits_at_end) b.logit_tokens.push_back(b.token_count() - 1);
  }
  return b;
}

// Of all threads of this process: what a busy machine does not stretch.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void Measure(HybridModel& model, int rows, int64_t tokens, int64_t bytes, const Options& o) {
  std::vector<float> logits(static_cast<size_t>(rows) * model.vocab_size());
  const double before = ReadBandwidth(o.threads);
  double best = 1e9;
  std::vector<double> times;
  const auto start = Clock::now();
  const double cpu_start = CpuSeconds();
  int64_t position = 0;
  while (Seconds(start) < 2.0 && position + tokens <= 40 * 64) {
    const StepBatch batch = Step(rows, position, tokens, model.vocab_size(), true);
    const auto step_start = Clock::now();
    CHECK(model.Run(batch, logits).ok());
    times.push_back(Seconds(step_start));
    best = std::min(best, times.back());
    position += tokens;
  }
  const double per_cpu = rows * position / (CpuSeconds() - cpu_start);
  const double bandwidth = std::max(before, ReadBandwidth(o.threads));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("%3d rows x %4ld tokens: median %8.1f tok/s, best %8.1f, per CPU second %8.1f", rows,
              static_cast<long>(tokens), rows * tokens / median, rows * tokens / best, per_cpu);
  if (rows == 1 && tokens == 1) {
    std::printf("; weights at %.1f GB/s median, %.1f best, reading at %.1f GB/s",
                bytes / median * 1e-9, bytes / best * 1e-9, bandwidth);
  }
  std::printf("\n");
}

int Main(int argc, char** argv) {
  const Options o = Parse(argc, argv);
  ModelConfig config;
  ModelWeights weights;
  if (o.model.empty()) {
    config = MakeConfig(o);
    weights = WeightMaker().Run(config, o.int8);
  } else {
    config = std::move(LoadModelConfig(o.model)).value();
    weights = std::move(LoadWeights(o.model, config, {0, 1, o.int8, {}})).value();
  }
  const int64_t bytes = BytesPerToken(config, weights);
  std::printf("%s, %d threads, %s, experts %s, %.1f MB per token\n",
              std::string(Name(BestCpuPath())).c_str(), o.threads, o.float32 ? "f32" : "bf16",
              o.int8 ? "int8" : "bf16", bytes * 1e-6);
  HybridModelOptions options;
  options.activations = o.float32 ? DType::kF32 : DType::kBF16;
  options.slots = 32;
  options.blocks = 32 * 40;
  options.tokens_per_step_max = 512;
  const auto collectives = MakeLocalCollectives(1);
  const auto model = std::move(HybridModel::Create(config, std::move(weights),
                                                   MakeCpuBackend({o.threads, BestCpuPath()}),
                                                   *collectives[0], options))
                         .value();
  for (const int rows : {1, 4, 8, 32}) Measure(*model, rows, 1, bytes, o);
  for (const int64_t tokens : {64, 512}) Measure(*model, 1, tokens, bytes, o);
  return 0;
}

}  // namespace
}  // namespace levin

int main(int argc, char** argv) { return levin::Main(argc, argv); }
