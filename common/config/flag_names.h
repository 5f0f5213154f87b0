// How flags are spelled: on the command line, in the environment, by a typo.
#pragma once

#include <span>
#include <string>

namespace levin {

// --max_model_len=4 and -tp 2 as the tables of flags know them; anything else as it came.
std::string CanonicalFlag(std::string argument);
// LEVIN_MAX_MODEL_LEN of "--max-model-len,--context-length".
std::string EnvironmentName(const std::string& flag);
// The known name with the fewest edits, the first of several; "" if none is known.
std::string NearestName(const std::string& name, std::span<const std::string> known);

}  // namespace levin
