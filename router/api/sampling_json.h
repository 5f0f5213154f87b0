// The fields that chat and completions share (api.md 4.1). Only for the .cc files of this folder.
#pragma once

#include "router/api/json_reader.h"
#include "router/api/openai_types.h"

namespace levin {

// Sampling, stopping and length, but for logprobs and max_completion_tokens.
void ReadInference(FieldReader& reader, InferenceRequest& out);

// stream, stream_options, return_token_ids, return_tokens_as_token_ids.
void ReadShape(FieldReader& reader, ReplyShape& out);

// Fails for every field of api.md 4.1 that is not built yet and asks for something.
void RefuseUnsupported(FieldReader& reader);

}  // namespace levin
