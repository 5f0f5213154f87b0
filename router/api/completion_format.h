// text_completion, whole and in chunks (api.md 5, 6).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "router/api/reply_format.h"

namespace levin {

class Tokenizer;

// `echoes`: [choices] what each text begins with; "" without echo.
std::unique_ptr<ReplyFormat> MakeCompletionFormat(ReplyHead head, const Tokenizer& tokenizer,
                                                  std::vector<std::string> echoes,
                                                  bool hide_special);

}  // namespace levin
