#include "router/api/tokenize_handler.h"

#include <boost/json.hpp>
#include <utility>

#include "router/api/json_writer.h"
#include "router/api/openai_json.h"
#include "router/text/tokenizer.h"

namespace levin {
namespace {

namespace json = boost::json;

Result<std::vector<TokenId>> Encode(const TokenizeRequest& request, const std::string& body,
                                    const ServedModel& model) {
  if (!request.chat) return model.EncodeText(request.prompt);
  ASSIGN_OR_RETURN(ChatPrompt prompt, model.EncodeChat(body));
  return std::move(prompt.ids);
}

Status Tokenize(const ApiCall& call, const Generator& generator) {
  ASSIGN_OR_RETURN_STATUS(const TokenizeRequest request, ParseTokenizeRequest(call.request.body));
  RETURN_IF_ERROR(generator.model().CheckName(request.model));
  ASSIGN_OR_RETURN_STATUS(const std::vector<TokenId> ids,
                          Encode(request, call.request.body, generator.model()));
  JsonWriter out;
  out.BeginObject().Field("count", static_cast<int64_t>(ids.size()));
  out.Field("max_model_len", generator.window()).Key("tokens").BeginArray();
  for (TokenId id : ids) out.Integer(id);
  out.EndArray().Key("token_strs");
  if (request.return_token_strs) {
    out.BeginArray();
    for (TokenId id : ids) out.String(generator.model().tokenizer().Bytes(id));
    out.EndArray();
  } else {
    out.Null();
  }
  out.EndObject();
  call.responder->SendJson(out.Take());
  return {};
}

Status Detokenize(const ApiCall& call, const Generator& generator) {
  ASSIGN_OR_RETURN_STATUS(const DetokenizeRequest request,
                          ParseDetokenizeRequest(call.request.body));
  RETURN_IF_ERROR(generator.model().CheckName(request.model));
  const int32_t vocab_size = generator.model().info().vocab_size;
  std::string text;
  for (size_t i = 0; i < request.tokens.size(); ++i) {
    const int64_t id = request.tokens[i];
    if (id < 0 || id >= vocab_size) {
      const std::string param = "tokens[" + std::to_string(i) + "]";
      return InvalidArgument(param + " must be a token id from 0 to " +
                             std::to_string(vocab_size - 1) + ", got " + std::to_string(id))
          .WithParam(param);
    }
    text += generator.model().tokenizer().Bytes(static_cast<TokenId>(id));
  }
  JsonWriter out;
  out.BeginObject().Field("prompt", text).EndObject();
  call.responder->SendJson(out.Take());
  return {};
}

// tokenizer_config.json, completed by what clients look for in it.
std::string TokenizerInfo(const ServedModel& model) {
  const Tokenizer& tokenizer = model.tokenizer();
  boost::system::error_code error;
  json::value config = json::parse(tokenizer.config_json(), error);
  json::object info;
  if (!error && config.is_object()) info = std::move(config.get_object());
  if (!info.contains("eos_token"))
    info["eos_token"] = std::string(tokenizer.Bytes(model.info().eos));
  if (!info.contains("tokenizer_class")) info["tokenizer_class"] = "PreTrainedTokenizerFast";
  if (!info.contains("chat_template")) info["chat_template"] = tokenizer.chat_template();
  return json::serialize(info);
}

}  // namespace

void HandleTokenize(ApiCall call, const Generator& generator) {
  if (Status status = Tokenize(call, generator); !status.ok()) call.responder->SendError(status);
}

void HandleDetokenize(ApiCall call, const Generator& generator) {
  if (Status status = Detokenize(call, generator); !status.ok()) call.responder->SendError(status);
}

void HandleTokenizerInfo(ApiCall call, const Generator& generator) {
  call.responder->SendJson(TokenizerInfo(generator.model()));
}

}  // namespace levin
