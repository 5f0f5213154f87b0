// Model folders that tests may break: copies of golden ones, or raw safetensors files of any text.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/golden.h"
#include "worker/weights/safetensors.h"

namespace levin::testing {

inline void WriteBytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string ReadBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Length, header, data: whatever they are.
inline std::string RawFile(std::string_view header, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return bytes + std::string(header) + std::string(data);
}

struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

inline std::string RawFile(const std::vector<RawTensor>& tensors) {
  boost::json::object header;
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", boost::json::value_from(tensor.shape)},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return RawFile(boost::json::serialize(header), data);
}

// A folder of the test's own, removed at its end.
class TempFolder {
 public:
  TempFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            ("levin_" + std::string(test->test_suite_name()) + "_" + test->name() + "_" +
             std::to_string(count_++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

inline std::filesystem::path GoldenModel(std::string_view name) {
  return GoldenDirs("network").front() / name;
}

// All tensors of a folder with an index, read with a stream and the header's own words.
inline std::vector<RawTensor> AllTensors(const std::filesystem::path& dir) {
  std::vector<RawTensor> all;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("model-") || entry.path().extension() != ".safetensors") continue;
    const std::string bytes = ReadBytes(entry.path());
    const auto file = SafetensorsFile::Open(entry.path());
    EXPECT_TRUE(file) << file.error().message();
    for (const StoredTensor& t : file->tensors()) {
      all.push_back(
          {t.name, t.dtype, t.shape,
           bytes.substr(static_cast<size_t>(t.data_begin), static_cast<size_t>(t.bytes))});
    }
  }
  return all;
}

// A copy of a golden model in which every file can be changed.
class ModelFolder final : public TempFolder {
 public:
  explicit ModelFolder(std::string_view golden) {
    std::filesystem::copy(GoldenModel(golden), path());
  }
  // One change of config.json.
  void SetConfig(std::string_view key, const boost::json::value& value) {
    boost::json::object config = boost::json::parse(ReadBytes(path() / "config.json")).as_object();
    config[key] = value;
    WriteBytes(path() / "config.json", boost::json::serialize(config));
  }
  // Replaces all shards by one model.safetensors with the tensors as `change` leaves them.
  template <typename Change>
  void Rewrite(Change change) {
    std::vector<RawTensor> tensors = AllTensors(path());
    change(tensors);
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().filename().string().starts_with("model")) {
        std::filesystem::remove(entry.path());
      }
    }
    WriteBytes(path() / "model.safetensors", RawFile(tensors));
  }
};

inline RawTensor& Named(std::vector<RawTensor>& tensors, std::string_view name) {
  for (RawTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return tensors.front();
}

}  // namespace levin::testing
