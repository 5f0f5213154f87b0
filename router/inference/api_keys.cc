#include "router/inference/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cctype>

namespace levin {
namespace {

constexpr std::string_view kScheme = "bearer";

// What stands behind the scheme; the empty view when it is another scheme.
std::string_view BearerToken(std::string_view authorization) {
  if (authorization.size() <= kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  if (authorization.front() != ' ') return {};
  const size_t begin = authorization.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  authorization.remove_prefix(begin);
  return authorization.substr(0, authorization.find_last_not_of(' ') + 1);
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!key.empty()) hashes_.push_back(HashOf(key));
  }
}

bool ApiKeys::Allows(std::string_view authorization) const {
  if (hashes_.empty()) return true;
  const Hash given = HashOf(BearerToken(authorization));
  int matches = 0;
  // Every key is compared whole: the time tells neither which one nor how much of it fits.
  for (const Hash& hash : hashes_) {
    matches += CRYPTO_memcmp(hash.data(), given.data(), hash.size()) == 0 ? 1 : 0;
  }
  return matches > 0;
}

ApiKeys::Hash ApiKeys::HashOf(std::string_view text) {
  Hash hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

}  // namespace levin
