#include "router/api/reply_start.h"

#include <utility>

#include "router/api/http_reply.h"

namespace levin {

ReplyHead MakeHead(const ApiCall& call, const Generator& generator, const Clock& clock,
                   std::string_view prefix, const ReplyShape& shape,
                   const std::vector<PreparedRequest>& requests) {
  ReplyHead head{.id = std::string(prefix) + call.responder->request_id(),
                 .model = generator.model().info().names.front(),
                 .fingerprint = generator.fingerprint(),
                 .created = clock.UnixMs() / 1000,
                 .shape = shape,
                 .prompt_ids = {}};
  if (shape.return_token_ids) {
    for (const PreparedRequest& request : requests) {
      head.prompt_ids.push_back(request.generation.prompt);
    }
  }
  return head;
}

void StartReply(const ApiCall& call, Generator& generator, std::unique_ptr<ReplyFormat> format,
                const ReplyShape& shape, std::vector<PreparedRequest> requests) {
  HttpReplyOptions options;
  options.choices = static_cast<int32_t>(requests.size());
  options.request_id = call.responder->request_id();
  options.ping_interval_ms = call.ping_interval_ms;
  options.headers = {{"x-levin-max-tokens", std::to_string(requests.front().max_tokens())}};
  for (const PreparedRequest& request : requests) options.prompt_tokens += request.prompt_tokens();

  const std::shared_ptr<HttpReply> reply =
      shape.stream ? MakeStreamedReply(std::move(format), call.responder, std::move(options), shape)
                   : MakeWholeReply(std::move(format), call.responder, std::move(options));
  reply->Begin();
  for (size_t i = 0; i < requests.size(); ++i) {
    auto generation =
        generator.Start(std::move(requests[i]), reply->SinkOf(static_cast<int32_t>(i)));
    if (!generation) return reply->Fail(generation.error());
    reply->Attach(*std::move(generation));
  }
}

}  // namespace levin
