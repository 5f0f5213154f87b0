#include "common/config/flag_names.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

namespace levin {
namespace {

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string CanonicalFlag(std::string argument) {
  if (argument == "-tp") return "--tensor-parallel-size";
  if (argument.rfind("-tp=", 0) == 0) return "--tensor-parallel-size" + argument.substr(3);
  if (argument.rfind("--", 0) != 0) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<ptrdiff_t>(end), '_', '-');
  return argument;
}

std::string EnvironmentName(const std::string& flag) {
  std::string name = "LEVIN_" + flag.substr(2, flag.find(',') - 2);
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string NearestName(const std::string& name, std::span<const std::string> known) {
  std::string nearest;
  size_t best = std::numeric_limits<size_t>::max();
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < best) best = distance, nearest = candidate;
  }
  return nearest;
}

}  // namespace levin
