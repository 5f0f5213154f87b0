// What a model folder says about its weights, without reading one of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "common/base/status.h"
#include "common/config/model_config.h"

namespace levin {

struct CheckpointFacts {
  enum class Source : uint8_t {
    kHeaders,  // every file is there; names, types and shapes were checked as loading does
    kIndex,    // only the index is: names were checked, sizes follow from config.json
    kConfig,   // neither: everything follows from config.json
  };
  Source source = Source::kConfig;
  int64_t tensors = 0;
  int64_t files = 0;             // that hold them; 0 without index and headers
  int64_t bytes = 0;             // of all tensors
  bool bytes_are_known = false;  // else as published: gates F32, norms BF16 (model.md 6.3)
  std::optional<int64_t> index_bytes = {};  // metadata.total_size of the index
};

// A folder with some of the indexed files but not all is an error that lists the missing ones: a
// copy was interrupted. One without any of them is planned from its index.
Result<CheckpointFacts> InspectCheckpoint(const std::filesystem::path& model_dir,
                                          const ModelConfig& config);

}  // namespace levin
