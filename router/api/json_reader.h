// Strict reading of request bodies (api.md 3). Only for the .cc files of this folder: includes
// Boost.JSON.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace levin {

// An object of valid UTF-8, at most 128 levels deep, every number finite; else INVALID_JSON.
Result<boost::json::object> ParseBody(std::string_view body);

// "a string", "an array": for messages.
std::string_view KindOf(const boost::json::value& value);

Status WrongType(std::string path, std::string_view expected, const boost::json::value& got);
Status Unsupported(std::string path, const std::string& message);

// 10 and 10.0 are integers, "10" and 10.5 are not; beyond int64 is INVALID_FIELD.
Result<int64_t> ReadInteger(const boost::json::value& value, const std::string& path);

// Reads the fields of one object. null counts as absent. The first error is kept, later reads go on
// and return what an absent field would: ask status() once at the end.
class FieldReader final {
 public:
  explicit FieldReader(const boost::json::object& object, std::string path = {})
      : object_(object), path_(std::move(path)) {}

  std::optional<double> Number(std::string_view key);
  std::optional<int64_t> Integer(std::string_view key);
  std::optional<bool> Bool(std::string_view key);
  std::optional<std::string> String(std::string_view key);
  std::vector<int64_t> Integers(std::string_view key);
  std::vector<std::string> Strings(std::string_view key);
  std::vector<std::string> StringOrStrings(std::string_view key);
  const boost::json::array* Array(std::string_view key);
  const boost::json::object* Object(std::string_view key);
  const boost::json::value* Any(std::string_view key) const;
  bool Has(std::string_view key) const { return Any(key) != nullptr; }

  std::string PathOf(std::string_view key) const;
  void Fail(Status status);
  const Status& status() const { return status_; }

 private:
  const boost::json::object& object_;
  const std::string path_;
  Status status_;
};

}  // namespace levin
