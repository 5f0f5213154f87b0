// JSON as the reference templates print it: Python's json.dumps(ensure_ascii=False), text.md 4.6.
#pragma once

#include <string>
#include <string_view>

#include "router/text/json_value.h"

namespace levin {

// What cannot be printed, and where inside the value: ".parameters.maximum", "[2]", "" for itself.
struct JsonPrintFault {
  std::string path;
  std::string_view what;  // "" when all was printed
  bool ok() const { return what.empty(); }
};

// Appends `value`. Faults: a number beyond a double, a lone surrogate in a string or a key.
JsonPrintFault AppendJson(const JsonValue& value, std::string& out);

// Appends `text`, valid UTF-8, as a JSON string.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace levin
