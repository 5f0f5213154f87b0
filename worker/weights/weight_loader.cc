#include "worker/weights/weight_loader.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/weights/block_reader.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/checkpoint_check.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/placement.h"

namespace levin {
namespace {

struct Job {
  const SafetensorsFile* file;
  const StoredTensor* stored;
  std::vector<WeightBlock> blocks;
};

// In file order.
std::vector<Job> PlanReads(const Checkpoint& checkpoint, const NeededByName& by_name,
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
  std::optional<RegularFile> data;
  const SafetensorsFile* open = nullptr;
  for (const Job& job : jobs) {
    if (job.file != open) {
      ASSIGN_OR_RETURN_STATUS(data, job.file->OpenData());
      open = job.file;
    }
    RETURN_IF_ERROR(reader.Read(*data, *job.stored, job.blocks));
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

uint64_t DigestOf(const ModelWeights& weights) {
  Digest digest;
  VisitWeights(weights, [&](std::string_view name, int64_t WeightBytes::*, const TensorView& view) {
    digest.Add(name, view);
  });
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
  RETURN_ERROR_IF(CheckTensors(checkpoint, needed, config));

  const ExpertFormat experts = ExpertFormatFor(config, options.quantize_experts_int8);
  ASSIGN_OR_RETURN(ModelWeights weights, AllocateWeights(config, rank, experts));
  RETURN_ERROR_IF(ReadAll(PlanReads(checkpoint, ByName(needed), config, rank, weights), options));
  weights.digest = DigestOf(weights);
  return weights;
}

}  // namespace levin
