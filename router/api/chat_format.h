// chat.completion and chat.completion.chunk (api.md 4.2 to 4.6).
#pragma once

#include <memory>

#include "router/api/reply_format.h"

namespace levin {

class Tokenizer;

std::unique_ptr<ReplyFormat> MakeChatFormat(ReplyHead head, const Tokenizer& tokenizer,
                                            bool include_reasoning);

}  // namespace levin
