#include "router/api/completion_handler.h"

#include <utility>

#include "router/api/completion_format.h"
#include "router/api/openai_json.h"
#include "router/api/reply_start.h"

namespace levin {
namespace {

Status SetPrompt(const CompletionPrompt& prompt, const Generator& generator,
                 InferenceRequest& out) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return generator.SetTextPrompt(*text, out);
  }
  out.prompt = std::get<std::vector<TokenId>>(prompt);
  return {};
}

// The text that the prompt's ids spell, which is what the model saw.
std::string TextOf(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  std::string text;
  for (TokenId id : ids) text += tokenizer.Bytes(id);
  return text;
}

Status Complete(ApiCall& call, Generator& generator, const Clock& clock) {
  ASSIGN_OR_RETURN_STATUS(CompletionRequest request, ParseCompletionRequest(call.request.body));
  RETURN_IF_ERROR(AdoptBodyId(call, request.request_id));
  RETURN_IF_ERROR(generator.model().CheckName(request.model));
  ASSIGN_OR_RETURN_STATUS(request.inference.timeout_ms, TimeoutOf(call.request));

  const Tokenizer& tokenizer = generator.model().tokenizer();
  std::vector<PreparedRequest> prepared;
  std::vector<std::string> echoes;
  for (const CompletionPrompt& prompt : request.prompts) {
    InferenceRequest inference = request.inference;
    RETURN_IF_ERROR(SetPrompt(prompt, generator, inference));
    ASSIGN_OR_RETURN_STATUS(prepared.emplace_back(), generator.Prepare(std::move(inference)));
    echoes.push_back(request.shape.echo ? TextOf(prepared.back().generation.prompt, tokenizer)
                                        : "");
  }
  auto format =
      MakeCompletionFormat(MakeHead(call, generator, clock, "cmpl-", request.shape, prepared),
                           tokenizer, std::move(echoes), request.inference.skip_special_tokens);
  StartReply(call, generator, std::move(format), request.shape, std::move(prepared));
  return {};
}

}  // namespace

void HandleCompletion(ApiCall call, Generator& generator, const Clock& clock) {
  if (Status status = Complete(call, generator, clock); !status.ok()) {
    call.responder->SendError(status);
  }
}

}  // namespace levin
