// The keys that open the guarded routes and calls. Kept as SHA-256, compared in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

class ApiKeys final {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);

  bool required() const { return !hashes_.empty(); }
  // The value of an Authorization header: "Bearer KEY", scheme in any case. Everything is allowed
  // while no key is set.
  bool Allows(std::string_view authorization) const;

 private:
  using Hash = std::array<uint8_t, 32>;
  static Hash HashOf(std::string_view text);

  std::vector<Hash> hashes_;
};

}  // namespace levin
