#include "router/text/chat_template.h"

#include <algorithm>
#include <utility>

#include "router/text/chat_renderers.h"
#include "router/text/sha256.h"

namespace levin {
namespace {

// SHA-256 of the decoded chat_template strings of MiniMax-M1: as published, and of commit 137270a6.
constexpr std::string_view kM1Published =
    "11fc33a57630c6e71a2231641db07c724208f4cc7611659c419c027c3fb3cf18";
constexpr std::string_view kM1Quoted =
    "a262256dc5b7ccb98a1307d93e5d6598904067279dcc53b2112e5538b296c0e6";

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

std::string_view FamilyOf(std::string_view architecture) {
  if (architecture == "MiniMaxM1ForCausalLM") return "minimax-m1";
  if (architecture == "MiniMaxText01ForCausalLM" || architecture == "MiniMaxForCausalLM") {
    return "minimax-text-01";
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Choose(std::string_view architecture,
                                                           const Tokenizer& tokenizer,
                                                           std::string_view name) {
  const std::string_view chosen = name == "auto" ? FamilyOf(architecture) : name;
  if (chosen.empty()) {
    return Error(InvalidArgument("no chat template for architecture '" + std::string(architecture) +
                                 "', expected MiniMaxM1ForCausalLM or MiniMaxText01ForCausalLM, or "
                                 "a template by name"));
  }
  const std::string& shipped = tokenizer.chat_template();
  const std::string digest = shipped.empty() ? "" : Sha256Hex(shipped);
  std::unique_ptr<ChatTemplate> made;
  if (chosen == "minimax-m1") made = MakeM1Template(digest == kM1Quoted);
  if (chosen == "minimax-m1-tools") made = MakeM1ToolsTemplate();
  if (chosen == "minimax-text-01") made = MakeText01Template();
  if (!made) {
    return Error(InvalidArgument("chat template '" + std::string(name) +
                                 "' is not known, expected auto, minimax-m1, minimax-m1-tools or "
                                 "minimax-text-01"));
  }
  const bool known = digest.empty() || digest == kM1Published || digest == kM1Quoted;
  if (name == "auto" && chosen == "minimax-m1" && !known) {
    made->warning_ = "the checkpoint's chat_template (SHA-256 " + digest +
                     ") is not one that Levin knows; rendering " + std::string(made->name()) +
                     " instead, check that the model expects it";
  }
  return made;
}

Result<std::vector<Segment>> ChatTemplate::Render(std::string_view request_json,
                                                  const ChatOptions& options) const {
  ASSIGN_OR_RETURN(const Conversation conversation, ReadConversation(request_json, options));
  return Render(conversation);
}

// The reply goes on where the content of the open turn ends: it is in its reasoning when that began
// with the tag and has not closed it (the rules of ReasoningParser).
ThinkStart ThinkStartOf(std::span<const Segment> prompt) {
  if (prompt.empty() || prompt.back().scaffold) return ThinkStart::kNone;
  std::string_view text = prompt.back().text;
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\v\f"), text.size()));
  if (!text.starts_with(kThinkOpen) || text.find(kThinkClose) != std::string_view::npos)
    return ThinkStart::kNone;
  text.remove_prefix(kThinkOpen.size());
  return text.find_first_not_of("\r\n") == std::string_view::npos ? ThinkStart::kAfterTag
                                                                  : ThinkStart::kInside;
}

}  // namespace levin
