#include "router/inference/served_model.h"

#include <utility>

#include "router/text/chat_template.h"

namespace levin {

Result<std::unique_ptr<ServedModel>> ServedModel::Load(const RouterOptions& options,
                                                       int64_t now_unix_s) {
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(options.model));
  ASSIGN_OR_RETURN(ModelInfo info, LoadModelInfo(options, tokenizer, now_unix_s));
  ASSIGN_OR_RETURN(std::unique_ptr<ChatTemplate> chat_template,
                   ChatTemplate::Choose(info.architecture, tokenizer, options.chat_template));
  return std::make_unique<ServedModel>(std::move(info), std::move(tokenizer),
                                       std::move(chat_template));
}

ServedModel::ServedModel(ModelInfo info, Tokenizer tokenizer,
                         std::unique_ptr<const ChatTemplate> chat_template)
    : info_(std::move(info)),
      tokenizer_(std::move(tokenizer)),
      chat_template_(std::move(chat_template)) {}

ServedModel::~ServedModel() = default;

Status ServedModel::CheckName(std::string_view name) const {
  if (name.empty() || info_.Serves(name)) return {};
  // The name is the client's text: it is not repeated.
  return Status(Code::kNotFound, "MODEL_NOT_FOUND",
                "the model that was asked for does not exist; served here: " + info_.names.front())
      .WithParam("model");
}

std::vector<TokenId> ServedModel::EncodeText(std::string_view text) const {
  return tokenizer_.Encode(text, SpecialTokens::kRecognised);
}

Result<ChatPrompt> ServedModel::EncodeChat(std::string_view request_json) const {
  ASSIGN_OR_RETURN(const std::vector<Segment> segments, RenderChat(request_json));
  return EncodeRendered(segments);
}

Result<std::vector<Segment>> ServedModel::RenderChat(std::string_view request_json) const {
  return chat_template_->Render(request_json, ChatOptions{});
}

ChatPrompt ServedModel::EncodeRendered(const std::vector<Segment>& segments) const {
  return ChatPrompt{.ids = tokenizer_.EncodeSegments(segments),
                    .think_start = ThinkStartOf(segments)};
}

}  // namespace levin
