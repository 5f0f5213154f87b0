// tokenizer.json as plain data. Every rule in it is either understood here or an error that names
// it: a guess would give other ids than the model was trained with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "router/text/added_tokens.h"
#include "router/text/bpe.h"
#include "router/text/vocabulary.h"

namespace levin {

struct TokenizerFile {
  std::vector<Vocabulary::Entry> vocabulary;  // raw bytes, the printable mapping undone
  std::vector<Merge> merges;
  std::vector<AddedToken> added;
  bool nfc = false;
  bool ignore_merges = false;
};

// Errors: NOT_FOUND without the file, INVALID_ARGUMENT for what is in it.
Result<TokenizerFile> ReadTokenizerFile(const std::filesystem::path& path);

// Of tokenizer_config.json; all empty when there is none.
struct TokenizerConfig {
  std::string json;           // verbatim
  std::string eos_token;      // its string
  std::string chat_template;  // decoded; of several named ones "default". A file
                              // chat_template.jinja beside it wins
};
Result<TokenizerConfig> ReadTokenizerConfig(const std::filesystem::path& model_dir);

}  // namespace levin
