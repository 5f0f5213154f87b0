// From checked requests to a running HTTP reply: what chat and completions have in common.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "router/api/api_call.h"
#include "router/api/openai_types.h"
#include "router/api/reply_format.h"
#include "router/inference/generator.h"

namespace levin {

// `prefix`: of the reply's id, "chatcmpl-" or "cmpl-".
ReplyHead MakeHead(const ApiCall& call, const Generator& generator, const Clock& clock,
                   std::string_view prefix, const ReplyShape& shape,
                   const std::vector<PreparedRequest>& requests);

// Starts one generation for each choice; the reply, good or bad, goes to the call's responder.
void StartReply(const ApiCall& call, Generator& generator, std::unique_ptr<ReplyFormat> format,
                const ReplyShape& shape, std::vector<PreparedRequest> requests);

}  // namespace levin
