#include "router/api/chat_handler.h"

#include <utility>

#include "router/api/chat_format.h"
#include "router/api/openai_json.h"
#include "router/api/reply_start.h"

namespace levin {
namespace {

// Everything that can be wrong is found here, before the reply begins.
Status Chat(ApiCall& call, Generator& generator, const Clock& clock) {
  ASSIGN_OR_RETURN_STATUS(ChatRequest request, ParseChatRequest(call.request.body));
  RETURN_IF_ERROR(AdoptBodyId(call, request.request_id));
  RETURN_IF_ERROR(generator.model().CheckName(request.model));
  ASSIGN_OR_RETURN_STATUS(request.inference.timeout_ms, TimeoutOf(call.request));
  RETURN_IF_ERROR(generator.SetChatPrompt(call.request.body, request.inference));
  const bool include_reasoning = request.inference.reply.include_reasoning;

  std::vector<PreparedRequest> prepared;
  ASSIGN_OR_RETURN_STATUS(prepared.emplace_back(), generator.Prepare(std::move(request.inference)));
  auto format =
      MakeChatFormat(MakeHead(call, generator, clock, "chatcmpl-", request.shape, prepared),
                     generator.model().tokenizer(), include_reasoning);
  StartReply(call, generator, std::move(format), request.shape, std::move(prepared));
  return {};
}

}  // namespace

void HandleChat(ApiCall call, Generator& generator, const Clock& clock) {
  if (Status status = Chat(call, generator, clock); !status.ok()) call.responder->SendError(status);
}

}  // namespace levin
