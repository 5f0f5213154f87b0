#include "worker/weights/weight_loader.h"

#include <xxhash.h>

#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/checkpoint_check.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/piece_loader.h"
#include "worker/weights/placement.h"
#include "worker/weights/read_plan.h"
#include "worker/weights/weight_layout.h"

namespace levin {
namespace {

uint64_t Chain(uint64_t seed, const void* data, int64_t bytes) {
  return XXH3_64bits_withSeed(data, static_cast<size_t>(bytes), seed);
}

// Over the pieces' sum, then names, types and shapes in their fixed order, so that names and files
// of the checkpoint leave no trace. Scales come here because quantising makes them beside the
// pieces: a few bytes of the whole.
uint64_t DigestOf(const ModelWeights& weights, uint64_t pieces) {
  uint64_t digest = pieces;
  VisitWeights(weights,
               [&](std::string_view name, int64_t WeightBytes::*kind, const TensorView& view) {
                 const int64_t facts[] = {static_cast<int64_t>(view.dtype), view.shape.rank(),
                                          view.elements(), view.shape.row_elements()};
                 digest = Chain(digest, name.data(), static_cast<int64_t>(name.size()));
                 digest = Chain(digest, facts, sizeof facts);
                 if (kind == &WeightBytes::scales) digest = Chain(digest, view.data, view.bytes());
               });
  return digest;
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
  const std::vector<ReadPiece> pieces = PlanReads(checkpoint, needed, config, rank, weights);
  ASSIGN_OR_RETURN(const uint64_t sum, LoadPieces(pieces, options.threads, options.progress));
  weights.digest = DigestOf(weights, sum);
  return weights;
}

}  // namespace levin
