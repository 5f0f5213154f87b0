// Request bodies -> structs (api.md 3, 4.1, 5, 7.1). Unknown fields are ignored; a known field has
// its effect or is refused with UNSUPPORTED_PARAMETER, never dropped, but for those that are
// documented to have none. Errors name the field by its dotted path. Pure.
#pragma once

#include <string_view>

#include "common/base/status.h"
#include "router/api/openai_types.h"

namespace levin {

// What is inside `messages` and `tools` is the template's to check; here are counts and kinds.
Result<ChatRequest> ParseChatRequest(std::string_view body);
Result<CompletionRequest> ParseCompletionRequest(std::string_view body);
Result<TokenizeRequest> ParseTokenizeRequest(std::string_view body);
Result<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body);

}  // namespace levin
