#include "common/config/option_units.h"

#include <cctype>
#include <charconv>
#include <span>

namespace levin {
namespace {

struct Unit {
  const char* suffix;
  int64_t factor;
};

constexpr Unit kCountUnits[] = {{"", 1}, {"k", 1000}, {"m", 1000'000}, {"g", 1000'000'000}};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"b", 1},
                               {"k", 1000},
                               {"kb", 1000},
                               {"m", 1000'000},
                               {"mb", 1000'000},
                               {"g", 1000'000'000},
                               {"gb", 1000'000'000},
                               {"kib", 1 << 10},
                               {"mib", 1 << 20},
                               {"gib", 1 << 30},
                               {"tib", int64_t{1} << 40},
                               {"t", 1000'000'000'000},
                               {"tb", 1000'000'000'000}};

constexpr Unit kTimeUnits[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

Result<int64_t> ParseWithUnits(const std::string& text, std::span<const Unit> units,
                               const char* expected) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string suffix(rest, end);
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& unit : units) {
    if (error != std::errc() || suffix != unit.suffix) continue;
    const double scaled = value * static_cast<double>(unit.factor);
    if (!(scaled >= 0) || scaled > 9.0e18) break;
    return static_cast<int64_t>(scaled);
  }
  return Error(InvalidArgument("'" + text + "' is not a number, expected " + expected));
}

}  // namespace

Result<int64_t> ParseCount(const std::string& text) {
  return ParseWithUnits(text, kCountUnits, "a count such as 4096, 256k or 1M");
}

Result<int64_t> ParseBytes(const std::string& text) {
  return ParseWithUnits(text, kByteUnits, "bytes such as 4096, 512MiB or 8GB");
}

Result<int64_t> ParseTimeMs(const std::string& text) {
  return ParseWithUnits(text, kTimeUnits, "a time such as 90, 90s, 500ms or 5m");
}

}  // namespace levin
