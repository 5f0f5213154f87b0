#include "common/config/option_files.h"

#include <cstdlib>
#include <fstream>

#include "common/config/flag_names.h"

namespace levin {

Status ExpandOptionsFiles(std::vector<std::string>& arguments) {
  const std::string flag = "--options-file=";
  std::vector<std::string> expanded;
  for (const std::string& argument : arguments) {
    if (argument.rfind(flag, 0) != 0) {
      expanded.push_back(argument);
      continue;
    }
    const std::string path = argument.substr(flag.size());
    std::ifstream file(path);
    if (!file) return InvalidArgument("--options-file: cannot read '" + path + "'");
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) expanded.push_back(CanonicalFlag(line));
    }
  }
  arguments = std::move(expanded);
  return Status::Ok();
}

Status ReadKeyFile(std::vector<std::string>& keys) {
  const char* path = std::getenv("LEVIN_API_KEY_FILE");
  if (path == nullptr || *path == '\0') return Status::Ok();
  std::ifstream file(path);
  if (!file) return InvalidArgument(std::string("LEVIN_API_KEY_FILE: cannot read '") + path + "'");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) keys.push_back(line);
  }
  return Status::Ok();
}

}  // namespace levin
