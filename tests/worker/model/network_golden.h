// The known values of one model folder of tests/golden/network (README there).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "worker/tensor/tensor.h"
#include "worker/weights/safetensors.h"

namespace levin::testing {

struct GoldenCase {
  std::string name;  // "bf16.len7"
  std::string variant;
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  int safe = 0;  // leading greedy tokens that must be reproduced
};

class NetworkGolden final {
 public:
  explicit NetworkGolden(const std::filesystem::path& dir);

  const std::vector<GoldenCase>& cases() const { return cases_; }
  bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }
  std::vector<float> Floats(const std::string& name) const;
  std::vector<int64_t> Integers(const std::string& name) const;
  std::vector<int64_t> ShapeOf(const std::string& name) const;

 private:
  template <typename T>
  std::vector<T> Read(const std::string& name, const char* dtype) const;

  SafetensorsFile file_;
  std::vector<GoldenCase> cases_;
};

// Folders with a config.json under every golden folder "network".
std::vector<std::filesystem::path> NetworkModels();

}  // namespace levin::testing
