// JSON objects from files of strangers. Heavy (Boost.JSON): include it in .cc files only.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "common/base/status.h"

namespace levin {

// Refuses what is no object and any object that says one key twice (readers differ in which one
// they believe). kInvalidArgument; the message has no prefix, the caller knows the file.
Result<boost::json::object> ParseStrictObject(std::string_view text);

}  // namespace levin
