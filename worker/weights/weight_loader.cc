#include "worker/weights/weight_loader.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/weights/block_reader.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/placement.h"

namespace levin {
namespace {

using Needed = std::unordered_map<std::string_view, const NeededTensor*>;

bool IsScale(WeightPiece piece) {
  return piece == WeightPiece::kW1Scale || piece == WeightPiece::kW3Scale ||
         piece == WeightPiece::kW2Scale;
}

Status CheckStored(const SafetensorsFile& file, const StoredTensor& stored,
                   const NeededTensor& needed) {
  const std::string who = "tensor '" + stored.name + "' in '" + file.path().string() + "'";
  if (!Accepts(needed.type, stored.dtype)) {
    const bool int8 = stored.dtype == "I8" || needed.type == StoredAs::kI8;
    return InvalidArgument(who + " has dtype " + stored.dtype + ", expected " +
                           std::string(Name(needed.type)) +
                           (int8 ? std::string(" (config.json ") +
                                       (needed.type == StoredAs::kI8 ? "says" : "does not say") +
                                       " that experts are stored as experts_int8)"
                                 : ""));
  }
  std::vector<int64_t> shape = stored.shape;
  if (IsScale(needed.piece) && shape.size() == 2 && shape[1] == 1) shape.pop_back();
  if (shape == needed.shape) return Status::Ok();
  return InvalidArgument(who + " has shape " + ShapeText(stored.shape) + ", expected " +
                         ShapeText(needed.shape));
}

// Names must match as sets, and each tensor be what its name promises.
Status CheckTensors(const Checkpoint& checkpoint, const std::vector<NeededTensor>& needed,
                    const Needed& by_name, const ModelConfig& config) {
  std::vector<std::string> unknown;
  std::vector<std::string> missing;
  for (const SafetensorsFile& file : checkpoint.files()) {
    for (const StoredTensor& stored : file.tensors()) {
      const auto entry = by_name.find(stored.name);
      if (entry != by_name.end()) {
        RETURN_IF_ERROR(CheckStored(file, stored, *entry->second));
      } else if (!IsIgnored(stored.name, config)) {
        unknown.push_back(stored.name);
      }
    }
  }
  for (const NeededTensor& tensor : needed) {
    if (!checkpoint.Has(tensor.name)) missing.push_back(tensor.name);
  }
  if (missing.empty() && unknown.empty()) return Status::Ok();
  std::string message =
      "the checkpoint's tensors are not those of the network that config.json "
      "describes";
  if (!missing.empty()) message += "; missing, " + ListText(missing);
  if (!unknown.empty()) message += "; unknown, " + ListText(unknown);
  return InvalidArgument(message);
}

struct Job {
  const SafetensorsFile* file;
  const StoredTensor* stored;
  std::vector<WeightBlock> blocks;
};

// In file order.
std::vector<Job> PlanReads(const Checkpoint& checkpoint, const Needed& by_name,
                           const ModelConfig& config, RankShare rank, const ModelWeights& weights) {
  std::vector<Job> jobs;
  for (const SafetensorsFile& file : checkpoint.files()) {
    for (const StoredTensor& stored : file.tensors()) {
      const auto entry = by_name.find(stored.name);
      if (entry == by_name.end()) continue;
      jobs.push_back({&file, &stored, Place(*entry->second, config, rank, weights)});
    }
  }
  return jobs;
}

Status ReadAll(const std::vector<Job>& jobs, const LoadOptions& options) {
  int64_t total = 0;
  int64_t done = 0;
  for (const Job& job : jobs) total += BlockReader::BytesOf(*job.stored, job.blocks);
  BlockReader reader([&](int64_t bytes) {
    done += bytes;
    if (options.progress) options.progress(done, total);
  });
  for (const Job& job : jobs) {
    RETURN_IF_ERROR(reader.Read(*job.file, *job.stored, job.blocks));
  }
  return Status::Ok();
}

// In the order of the structs, so that names and files of the checkpoint leave no trace.
class Digest final {
 public:
  Digest() { XXH3_64bits_reset(state_); }
  ~Digest() { XXH3_freeState(state_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void Add(std::string_view name, const TensorView& tensor) {
    const int64_t facts[] = {static_cast<int64_t>(tensor.dtype), tensor.shape.rank(),
                             tensor.elements(), tensor.shape.row_elements()};
    XXH3_64bits_update(state_, name.data(), name.size());
    XXH3_64bits_update(state_, facts, sizeof facts);
    if (tensor) XXH3_64bits_update(state_, tensor.data, static_cast<size_t>(tensor.bytes()));
  }
  uint64_t value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* const state_ = XXH3_createState();
};

void AddLayer(const LayerWeights& layer, Digest& digest) {
  digest.Add("input_norm", layer.input_norm);
  digest.Add("post_attention_norm", layer.post_attention_norm);
  digest.Add("qkv", layer.qkv);
  digest.Add("output_gate", layer.output_gate);
  digest.Add("lightning_norm", layer.lightning_norm);
  digest.Add("out", layer.out);
  digest.Add("q", layer.q);
  digest.Add("k", layer.k);
  digest.Add("v", layer.v);
  digest.Add("o", layer.o);
  digest.Add("gate", layer.gate);
  digest.Add("w13", layer.w13);
  digest.Add("w2", layer.w2);
  digest.Add("w13_scale", layer.w13_scale);
  digest.Add("w2_scale", layer.w2_scale);
}

uint64_t DigestOf(const ModelWeights& weights) {
  Digest digest;
  digest.Add("embedding", weights.embedding);
  digest.Add("head", weights.head);
  digest.Add("final_norm", weights.final_norm);
  for (const LayerWeights& layer : weights.layers) AddLayer(layer, digest);
  return digest.value();
}

}  // namespace

Result<ModelWeights> LoadWeights(const std::filesystem::path& model_dir, const ModelConfig& config,
                                 const LoadOptions& options) {
  RETURN_ERROR_IF(CheckTensorParallel(config, options.ranks));
  CHECK(options.rank >= 0 && options.rank < options.ranks, options.rank, options.ranks);
  const RankShare rank{options.rank, options.ranks};

  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(model_dir));
  const std::vector<NeededTensor> needed =
      NeededTensors(config, [&](std::string_view name) { return checkpoint.Has(name); });
  Needed by_name;
  for (const NeededTensor& tensor : needed) by_name.emplace(tensor.name, &tensor);
  RETURN_ERROR_IF(CheckTensors(checkpoint, needed, by_name, config));

  const bool int8 = options.quantize_experts_int8 || config.experts_stored_int8;
  ASSIGN_OR_RETURN(ModelWeights weights,
                   AllocateWeights(config, rank, int8 ? ExpertFormat::kInt8 : ExpertFormat::kBF16));
  RETURN_ERROR_IF(ReadAll(PlanReads(checkpoint, by_name, config, rank, weights), options));
  weights.digest = DigestOf(weights);
  return weights;
}

}  // namespace levin
