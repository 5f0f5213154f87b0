#include "tests/worker/model/network_golden.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>

#include "common/base/check.h"
#include "tests/support/golden.h"

namespace levin::testing {
namespace {

SafetensorsFile OpenFile(const std::filesystem::path& path) {
  Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  CHECK(file.has_value(), file.error().message());
  return *std::move(file);
}

std::vector<TokenId> Ids(const boost::json::value& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.as_array()) ids.push_back(id.to_number<TokenId>());
  return ids;
}

}  // namespace

NetworkGolden::NetworkGolden(const std::filesystem::path& dir)
    : file_(OpenFile(dir / "golden.safetensors")) {
  std::ifstream in(dir / "golden.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const boost::json::value list = boost::json::parse(text);
  for (const auto& entry : list.as_array()) {
    GoldenCase c;
    c.name = entry.at("case").as_string();
    c.variant = c.name.substr(0, c.name.find('.'));
    c.prompt = Ids(entry.at("prompt"));
    c.greedy = Ids(entry.at("greedy"));
    c.safe = entry.at("safe").to_number<int>();
    cases_.push_back(std::move(c));
  }
}

template <typename T>
std::vector<T> NetworkGolden::Read(const std::string& name, const char* dtype) const {
  const StoredTensor* tensor = file_.Find(name);
  CHECK(tensor != nullptr && tensor->dtype == dtype, name);
  std::vector<T> values(tensor->bytes / sizeof(T));
  const Status status = file_.Read(*tensor, 0, std::as_writable_bytes(std::span(values)));
  CHECK(status.ok(), status.message());
  return values;
}

std::vector<float> NetworkGolden::Floats(const std::string& name) const {
  return Read<float>(name, "F32");
}
std::vector<int64_t> NetworkGolden::Integers(const std::string& name) const {
  return Read<int64_t>(name, "I64");
}
std::vector<int64_t> NetworkGolden::ShapeOf(const std::string& name) const {
  return file_.Find(name)->shape;
}

std::vector<std::filesystem::path> NetworkModels() {
  std::vector<std::filesystem::path> models;
  for (const auto& dir : GoldenDirs("network")) {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (std::filesystem::exists(entry.path() / "config.json")) models.push_back(entry.path());
    }
  }
  std::sort(models.begin(), models.end());
  return models;
}

}  // namespace levin::testing
