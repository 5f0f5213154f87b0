// Messages -> the text that the model was trained to see, byte for byte as the published templates
// render it (text.md 4 and 5). One renderer per family.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "router/text/conversation.h"
#include "router/text/reasoning_parser.h"
#include "router/text/tokenizer.h"

namespace levin {

// Immutable; any thread may call the const methods.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // `architecture`: architectures[0] of config.json. `name`: "auto" (the family's own, in the
  // variant that the checkpoint's chat_template names) or minimax-m1, minimax-m1-tools,
  // minimax-text-01. kInvalidArgument for another name or, with "auto", an unknown architecture.
  static Result<std::unique_ptr<ChatTemplate>> Choose(std::string_view architecture,
                                                      const Tokenizer& tokenizer,
                                                      std::string_view name);

  // `request_json`: the whole body of a chat request; see ReadConversation for what is read of it
  // and for the errors. Structure is scaffold, every byte of the request is content.
  Result<std::vector<Segment>> Render(std::string_view request_json,
                                      const ChatOptions& options) const;

  virtual std::vector<Segment> Render(const Conversation& conversation) const = 0;
  virtual std::string_view name() const = 0;

  // To be logged at the start: the checkpoint has a chat template that is not known. "" if all is
  // well.
  const std::string& warning() const { return warning_; }

 private:
  std::string warning_;
};

// Whether the prompt's last turn is open and ends inside a <think> block, and if so whether only
// newlines stand behind the tag: the reply then begins in its reasoning.
ThinkStart ThinkStartOf(std::span<const Segment> prompt);
inline bool EndsInThinkBlock(std::span<const Segment> prompt) {
  return ThinkStartOf(prompt) != ThinkStart::kNone;
}

}  // namespace levin
