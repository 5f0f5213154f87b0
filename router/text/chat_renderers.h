// The built-in renderers, for chat_template.cc.
#pragma once

#include <memory>

#include "router/text/chat_template.h"

namespace levin {

// MiniMax-M1's own. The published file spells the keys of its example line without quotes, the
// never-merged branch with them.
std::unique_ptr<ChatTemplate> MakeM1Template(bool quoted_keys);
// vLLM's example for M1 with tools.
std::unique_ptr<ChatTemplate> MakeM1ToolsTemplate();
std::unique_ptr<ChatTemplate> MakeText01Template();

// Pieces that they share.
inline constexpr std::string_view kTurnBegin = "<beginning_of_sentence>";
inline constexpr std::string_view kTurnEnd = "<end_of_sentence>\n";
inline constexpr std::string_view kToolsHead =
    "system tool_setting=tools\nYou are provided with these tools:\n<tools>\n";
inline constexpr std::string_view kToolsFoot =
    "</tools>\n\nIf you need to call tools, please respond with <tool_calls></tool_calls> XML "
    "tags, "
    "and provide tool-name and json-object of arguments, following the format "
    "below:\n<tool_calls>\n";

}  // namespace levin
