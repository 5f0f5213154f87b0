// Tokenizer, chat template and facts of the served model in one place: all that turns a request's
// text into ids. Constant after the start; any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/config/options.h"
#include "router/inference/model_info.h"
#include "router/text/reasoning_parser.h"
#include "router/text/tokenizer.h"

namespace levin {

class ChatTemplate;

struct ChatPrompt {
  std::vector<TokenId> ids;
  ThinkStart think_start = ThinkStart::kNone;  // whether it ends inside an open <think>
};

class ServedModel final {
 public:
  static Result<std::unique_ptr<ServedModel>> Load(const RouterOptions& options,
                                                   int64_t now_unix_s);
  // From parts, for tests and for Load.
  ServedModel(ModelInfo info, Tokenizer tokenizer,
              std::unique_ptr<const ChatTemplate> chat_template);
  ~ServedModel();

  const ModelInfo& info() const { return info_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ChatTemplate& chat_template() const { return *chat_template_; }

  // OK for a served name and for "" (the model that there is); else kNotFound MODEL_NOT_FOUND.
  Status CheckName(std::string_view name) const;
  // A raw prompt: spellings of special tokens become their ids.
  std::vector<TokenId> EncodeText(std::string_view text) const;
  // `request_json`: an object with messages, tools, add_generation_prompt, continue_final_message,
  // chat_template_kwargs as in a chat request (text.md 5). Errors name the field's path.
  Result<ChatPrompt> EncodeChat(std::string_view request_json) const;
  // Its two steps.
  Result<std::vector<Segment>> RenderChat(std::string_view request_json) const;
  ChatPrompt EncodeRendered(const std::vector<Segment>& segments) const;

 private:
  const ModelInfo info_;
  const Tokenizer tokenizer_;
  const std::unique_ptr<const ChatTemplate> chat_template_;
};

}  // namespace levin
