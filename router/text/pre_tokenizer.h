// The split of text into pre-tokens: the o200k pattern of text.md 2.3, by hand and in linear time
// (a regular-expression engine recurses or gives up on a mebibyte of blanks).
#pragma once

#include <cstddef>
#include <string_view>

#include "router/text/char_table.h"

namespace levin {

// The one pattern that is known, as tokenizer.json spells it.
extern const std::string_view kSplitPattern;

// The end of the pre-token that begins at `begin` < text.size(). `text` is UTF-8 in NFC.
size_t PreTokenEnd(std::string_view text, size_t begin, const CharTable& table);

}  // namespace levin
