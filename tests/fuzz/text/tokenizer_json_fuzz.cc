// A tokenizer.json from a stranger: refused with words, or it cuts any text into ids that it
// defines, which are that text again (but for whitespace that an added token takes along).
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "router/text/tokenizer.h"
#include "tests/fuzz/require.h"

namespace levin {
namespace {

using levin::testing::Require;

// One folder a process, removed at its end.
class Folder final {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "levin_fuzz_XXXXXX").string();
    Require(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr const char* kTexts[] = {"", "the other he-her 1234567\r\n\t  x", "<end><pad> the\x01",
                                  "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 caf\xc3\xa9"};

void Check(const Tokenizer& tokenizer) {
  const bool takes_whitespace = tokenizer.longest_token_bytes() == SIZE_MAX;
  for (const char* text : kTexts) {
    for (const auto specials : {SpecialTokens::kPlainText, SpecialTokens::kRecognised}) {
      std::string bytes;
      for (const TokenId id : tokenizer.Encode(text, specials)) {
        Require(id >= 0 && id < tokenizer.vocab_size() && tokenizer.IsDefined(id));
        Require(specials == SpecialTokens::kRecognised || !tokenizer.IsSpecial(id));
        bytes += tokenizer.Bytes(id);
      }
      if (!takes_whitespace) Require(bytes == text);
    }
  }
  if (const auto end = tokenizer.eos_token()) Require(tokenizer.IsDefined(*end));
}

}  // namespace
}  // namespace levin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const levin::Folder folder;
  std::ofstream(folder.path() / "tokenizer.json", std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto tokenizer = levin::Tokenizer::Load(folder.path());
  if (tokenizer) {
    levin::Check(*tokenizer);
  } else {
    levin::testing::Require(!tokenizer.error().message().empty());
  }
  return 0;
}
