// Arguments and secrets that come from files, so that the process list does not show them.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace levin {

// --options-file FILE: one argument a line, in place; how a supervisor hands over keys.
Status ExpandOptionsFiles(std::vector<std::string>& arguments);
// LEVIN_API_KEY_FILE: a secret from a file, one key a line.
Status ReadKeyFile(std::vector<std::string>& keys);

}  // namespace levin
