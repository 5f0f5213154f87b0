// Unicode's normalisation form C, in time linear in the text (n log n in the longest run of marks).
#pragma once

#include <string>
#include <string_view>

#include "router/text/char_table.h"

namespace levin {

// `text` itself when it is NFC already, else its normal form, kept in `storage`.
std::string_view ToNfc(std::string_view text, const CharTable& table, std::string& storage);

}  // namespace levin
