#include "common/http/request_id.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace levin {
namespace {

constexpr size_t kRequestIdMax = 128;
constexpr std::string_view kField = "x-request-id:";

bool StartsWithField(std::string_view line) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  return line.size() >= kField.size() &&
         std::equal(kField.begin(), kField.end(), line.begin(),
                    [&same](char expected, char c) { return same(c, expected); });
}

}  // namespace

std::string NewRequestId() {
  std::random_device source;
  std::string id;
  for (int word = 0; word < 4; ++word) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", source());
    id += digits;
  }
  return id;
}

std::string OwnAnswerId(std::string_view sent) {
  const bool visible =
      std::all_of(sent.begin(), sent.end(), [](char c) { return c > ' ' && c < 127; });
  return visible && !sent.empty() ? std::string(sent.substr(0, kRequestIdMax)) : NewRequestId();
}

std::string_view RequestIdInHead(std::string_view head) {
  while (true) {
    const size_t end = head.find("\r\n");
    if (end == 0 || end == std::string_view::npos) return {};
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (!StartsWithField(line)) continue;
    line.remove_prefix(kField.size());
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t") - first + 1);
  }
}

}  // namespace levin
