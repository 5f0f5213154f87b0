// Which ids of the vocabulary exist, from tokenizer.json without its merges: every rank masks the
// others (model.md 2.4), and the file's hash joins the ranks' and the router's view of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace levin {

struct TokenizerFacts {
  std::vector<bool> defined;  // [vocab]
  uint64_t hash = 0;          // XXH3-64 of the file's bytes; 0: the folder has no tokenizer.json
};

// A folder without tokenizer.json defines every id. An id of `model.vocab` or `added_tokens` that
// is negative or >= vocab is an error that names the token and the id.
Result<TokenizerFacts> DefinedTokens(const std::filesystem::path& model_dir, int32_t vocab);

// The same from the file's text. vocab >= 1.
Result<TokenizerFacts> ParseDefinedTokens(std::string_view text, int32_t vocab);

}  // namespace levin
