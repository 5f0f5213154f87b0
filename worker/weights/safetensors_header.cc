// The header of a safetensors file and the index of a folder of them: text in, checked facts out.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <utility>

#include "common/config/json_fields.h"
#include "common/config/strict_json.h"
#include "worker/weights/safetensors.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr std::pair<std::string_view, int64_t> kWidths[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
    {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
    {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8},
};

std::optional<int64_t> WidthOf(std::string_view dtype) {
  for (const auto& [name, width] : kWidths) {
    if (name == dtype) return width;
  }
  return std::nullopt;
}

std::string KnownDtypes() {
  std::string text;
  for (const auto& [name, width] : kWidths) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

Status Wrong(std::string_view tensor, const std::string& what) {
  return InvalidArgument("tensor " + ShortText(json::string(tensor)) + " " + what);
}

// A list of non-negative integers; nullopt when it is anything else.
std::optional<std::vector<int64_t>> Integers(const json::value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json::value& entry : value->get_array()) {
    const int64_t* number = entry.if_int64();
    if (number == nullptr || *number < 0) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Status CheckRange(const StoredTensor& tensor, int64_t begin, int64_t end, int64_t data_bytes) {
  if (begin <= end && end <= data_bytes) return Status::Ok();
  return Wrong(tensor.name, "has data_offsets [" + std::to_string(begin) + ", " +
                                std::to_string(end) + "], expected a range within the " +
                                std::to_string(data_bytes) + " bytes of data that the file has");
}

Status CheckSize(const StoredTensor& tensor) {
  const std::optional<int64_t> width = WidthOf(tensor.dtype);
  if (!width) {
    return Wrong(tensor.name, "has dtype " + ShortText(json::string(tensor.dtype)) +
                                  ", expected one of " + KnownDtypes());
  }
  int64_t bytes = *width;
  bool overflow = false;
  for (int64_t dim : tensor.shape) overflow |= __builtin_mul_overflow(bytes, dim, &bytes);
  if (!overflow && bytes == tensor.bytes) return Status::Ok();
  return Wrong(tensor.name, "has " + std::to_string(tensor.bytes) + " bytes, expected " +
                                (overflow ? "more than 2^63" : std::to_string(bytes)) +
                                " for shape " + ShapeText(tensor.shape) + " of " + tensor.dtype);
}

// Bounds before dtype: an unknown dtype must not hide a range outside the file.
Result<StoredTensor> ParseEntry(std::string_view name, const json::value& entry, int64_t data_begin,
                                int64_t data_bytes) {
  const json::object* fields = entry.if_object();
  if (fields == nullptr) return Error(Wrong(name, "has no object as its entry"));
  const auto shape = Integers(fields->if_contains("shape"));
  if (!shape) return Error(Wrong(name, "has no 'shape' of integers from 0 on"));
  const auto offsets = Integers(fields->if_contains("data_offsets"));
  if (!offsets || offsets->size() != 2) {
    return Error(Wrong(name, "has no 'data_offsets' of two integers from 0 on"));
  }
  StoredTensor tensor{.name = std::string(name), .dtype = "", .shape = *shape};
  RETURN_ERROR_IF(CheckRange(tensor, (*offsets)[0], (*offsets)[1], data_bytes));
  tensor.data_begin = data_begin + (*offsets)[0];
  tensor.bytes = (*offsets)[1] - (*offsets)[0];
  const json::value* dtype = fields->if_contains("dtype");
  if (dtype == nullptr || !dtype->is_string()) return Error(Wrong(name, "has no 'dtype'"));
  tensor.dtype = std::string(dtype->get_string());
  RETURN_ERROR_IF(CheckSize(tensor));
  return tensor;
}

// In file order, every byte of the data belongs to exactly one tensor.
Status CheckCover(std::span<const StoredTensor> tensors, int64_t data_begin, int64_t file_bytes) {
  int64_t expected = data_begin;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.data_begin != expected) {
      return Wrong(tensor.name, "begins at byte " + std::to_string(tensor.data_begin - data_begin) +
                                    " of the data, expected " +
                                    std::to_string(expected - data_begin) +
                                    ": tensors must neither overlap nor leave gaps");
    }
    expected += tensor.bytes;
  }
  if (expected == file_bytes) return Status::Ok();
  return InvalidArgument("has " + std::to_string(file_bytes) + " bytes, expected the " +
                         std::to_string(expected) + " that its header describes");
}

std::optional<int64_t> TotalSize(const json::object& index) {
  const json::value* metadata = index.if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return std::nullopt;
  const json::value* total = metadata->get_object().if_contains("total_size");
  const int64_t* bytes = total == nullptr ? nullptr : total->if_int64();
  return bytes == nullptr || *bytes < 0 ? std::nullopt : std::optional(*bytes);
}

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

Result<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                         int64_t data_begin, int64_t file_bytes) {
  ASSIGN_OR_RETURN(const json::object object, ParseStrictObject(header));
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : object) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return Error(WrongValue("__metadata__", entry, "an object"));
      continue;
    }
    ASSIGN_OR_RETURN(StoredTensor tensor,
                     ParseEntry(name, entry, data_begin, file_bytes - data_begin));
    tensors.push_back(std::move(tensor));
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data_begin, a.bytes) < std::pair(b.data_begin, b.bytes);
  });
  RETURN_ERROR_IF(CheckCover(tensors, data_begin, file_bytes));
  return tensors;
}

Result<SafetensorsIndex> ParseSafetensorsIndex(std::string_view text) {
  ASSIGN_OR_RETURN(const json::object object, ParseStrictObject(text));
  const json::value* map = object.if_contains("weight_map");
  if (map == nullptr || !map->is_object() || map->get_object().empty()) {
    return Error(MissingKey("weight_map", "an object of tensor names and file names"));
  }
  SafetensorsIndex index;
  for (const auto& [name, file] : map->get_object()) {
    const std::string_view shard = file.is_string() ? file.get_string() : std::string_view();
    const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                       shard.find('/') == shard.npos && shard.find('\0') == shard.npos;
    if (!plain) {
      return Error(WrongValue("weight_map." + std::string(name), file,
                              "the name of a file in the same folder"));
    }
    index.shards.emplace(name, shard);
  }
  index.total_size = TotalSize(object);
  return index;
}

}  // namespace levin
