#include "common/config/json_fields.h"

#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

namespace levin {
namespace {

namespace json = boost::json;

std::string NumberText(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

}  // namespace

std::string ShortText(const json::value& value) {
  constexpr size_t kMax = 80;
  std::string text = json::serialize(value);
  if (text.size() > kMax) text = text.substr(0, kMax) + "...";
  return text;
}

Status WrongValue(std::string_view key, const json::value& value, std::string_view expected) {
  return InvalidArgument("key '" + std::string(key) + "' is " + ShortText(value) + ", expected " +
                         std::string(expected));
}

Status MissingKey(std::string_view key, std::string_view expected) {
  return InvalidArgument("key '" + std::string(key) + "' is missing, expected " +
                         std::string(expected));
}

const json::value* JsonFields::Find(std::string_view key) const {
  const json::value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<int64_t>> JsonFields::Integer(std::string_view key, int64_t min,
                                                   int64_t max) const {
  const json::value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < min || *number > max) {
    return Error(
        WrongValue(FullName(key), *value,
                   "an integer from " + std::to_string(min) + " to " + std::to_string(max)));
  }
  return *number;
}

Result<std::optional<double>> JsonFields::Number(std::string_view key, double above,
                                                 double below) const {
  const json::value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  json::error_code error;
  const double number = value->is_number() ? value->to_number<double>(error) : NAN;
  if (error || !(number > above) || !(number < below)) {
    std::string expected = "a number";
    if (std::isfinite(above)) expected += " greater than " + NumberText(above);
    if (std::isfinite(below)) expected += " less than " + NumberText(below);
    return Error(WrongValue(FullName(key), *value, expected));
  }
  return number;
}

Result<std::optional<bool>> JsonFields::Boolean(std::string_view key) const {
  const json::value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) return Error(WrongValue(FullName(key), *value, "true or false"));
  return value->get_bool();
}

Result<std::optional<std::string>> JsonFields::Text(std::string_view key) const {
  const json::value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return Error(WrongValue(FullName(key), *value, "a string"));
  return std::string(value->get_string());
}

Result<int64_t> JsonFields::NeedInteger(std::string_view key, int64_t min, int64_t max) const {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, Integer(key, min, max));
  if (!value) return Error(MissingKey(FullName(key), "an integer"));
  return *value;
}

Result<double> JsonFields::NeedNumber(std::string_view key, double above, double below) const {
  ASSIGN_OR_RETURN(const std::optional<double> value, Number(key, above, below));
  if (!value) return Error(MissingKey(FullName(key), "a number"));
  return *value;
}

void Spellings::Add(std::string name, std::optional<double> value) {
  names_ += (names_.empty() ? "" : "' or '") + name;
  if (!value) return;
  if (value_ && *value_ != *value && conflict_.ok()) {
    conflict_ =
        InvalidArgument("key '" + name + "' gives " + NumberText(*value) + ", but '" + first_name_ +
                        "' gives " + NumberText(*value_) + "; expected the same from both");
  }
  if (!value_) {
    value_ = value;
    first_name_ = std::move(name);
  }
}

Result<double> Spellings::One(std::string_view expected) const {
  RETURN_ERROR_IF(conflict_);
  if (!value_) return Error(MissingKey(names_, expected));
  return *value_;
}

}  // namespace levin
