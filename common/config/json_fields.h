// Typed reading of one JSON object, with errors that name key, value and what was expected.
// Heavy (Boost.JSON): include it in .cc files only.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace levin {

// The value as text for a message, cut when long.
std::string ShortText(const boost::json::value& value);

// "key 'hidden_size' is 0, expected an integer from 1 to 1048576"
Status WrongValue(std::string_view key, const boost::json::value& value, std::string_view expected);
Status MissingKey(std::string_view key, std::string_view expected);

// Views one object, which must outlive it. A key whose value is null counts as absent.
class JsonFields final {
 public:
  // `path` stands before key names in messages: "rope_parameters." or "".
  explicit JsonFields(const boost::json::object& object, std::string path = "")
      : object_(&object), path_(std::move(path)) {}

  const boost::json::value* Find(std::string_view key) const;  // null: absent
  std::string FullName(std::string_view key) const { return path_ + std::string(key); }

  Result<std::optional<int64_t>> Integer(std::string_view key, int64_t min, int64_t max) const;
  Result<std::optional<double>> Number(std::string_view key, double above, double below) const;
  Result<std::optional<bool>> Boolean(std::string_view key) const;
  Result<std::optional<std::string>> Text(std::string_view key) const;

  Result<int64_t> NeedInteger(std::string_view key, int64_t min, int64_t max) const;
  Result<double> NeedNumber(std::string_view key, double above, double below) const;

 private:
  const boost::json::object* object_;
  std::string path_;
};

// One quantity under several names: all that are present must agree, at least one must be.
class Spellings final {
 public:
  void Add(std::string name, std::optional<double> value);
  Result<double> One(std::string_view expected) const;

 private:
  std::string names_;  // all, for the message when none is there
  std::string first_name_;
  std::optional<double> value_;
  Status conflict_;
};

}  // namespace levin
