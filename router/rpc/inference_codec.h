// Requests of levin.v1.Inference as router/inference understands them. Pure. Errors are
// kInvalidArgument with the path of the field; what is not built yet has the reason
// UNSUPPORTED_PARAMETER, as in the HTTP API.
#pragma once

#include <string>

#include "common/base/status.h"
#include "levin/v1/inference.pb.h"
#include "router/inference/inference_request.h"

namespace levin {

// How the reply is written.
struct ReplyForm {
  bool whole = false;  // one Completed with the whole choice
  bool echo = false;
  bool logprobs = false;
  bool return_token_ids = false;
  bool usage_every_event = false;
};

struct ReadRequest {
  InferenceRequest inference;  // without prompt
  ReplyForm form;
};

Result<ReadRequest> ReadGenerate(const v1::GenerateRequest& request);
Result<ReadRequest> ReadChat(const v1::ChatRequest& request);

// The request as the body of a chat request of the HTTP API: what the chat templates read.
Result<std::string> ChatJson(const v1::ChatRequest& request);

// A field's name in router/inference -> its path in these messages: "sampling.temperature".
std::string FieldPath(const std::string& param);

}  // namespace levin
