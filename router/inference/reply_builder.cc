#include "router/inference/reply_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace levin {
namespace {

void MoveTokens(std::vector<SampledToken>& from, std::vector<SampledToken>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
  from.clear();
}

}  // namespace

ReplyBuilder::ReplyBuilder(const PreparedRequest& request, const Tokenizer& tokenizer)
    : eos_(request.eos),
      stop_ids_(request.generation.sampling.stop_ids),
      min_tokens_(request.generation.sampling.min_tokens),
      max_tokens_(request.generation.max_new_tokens),
      include_stop_(request.include_stop),
      text_(tokenizer, {.stop = request.stop,
                        .skip_special_tokens = request.skip_special_tokens,
                        .include_stop = request.include_stop}) {}

void ReplyBuilder::Push(std::span<const SampledToken> tokens, std::vector<ReplyEvent>& out) {
  for (const SampledToken& token : tokens) {
    if (finished_) return;
    PushOne(token, out);
  }
}

void ReplyBuilder::PushOne(const SampledToken& token, std::vector<ReplyEvent>& out) {
  if (completion_tokens_++ == 0) out.push_back(FirstTokenEvent{});
  unshown_.push_back(token);
  if (std::find(stop_ids_.begin(), stop_ids_.end(), token.token) != stop_ids_.end()) {
    return PushStopId(token.token, out);
  }
  TextStream::Piece piece = text_.Push(token.token, completion_tokens_ >= min_tokens_);
  Show(std::move(piece.text), out);
  if (piece.stopped) {
    ended_by_text_ = true;
    return End({.reason = ReplyFinish::kStop, .stop_string = std::move(piece.stop_string)}, out);
  }
  if (completion_tokens_ >= max_tokens_) End({.reason = ReplyFinish::kLength}, out);
}

// The end token or a stop id: its text is hidden, unless it is asked for like a stop string's.
void ReplyBuilder::PushStopId(TokenId token, std::vector<ReplyEvent>& out) {
  TextStream::Piece piece =
      include_stop_ ? text_.Push(token, /*check_stop=*/false) : text_.PushHidden(token);
  Show(std::move(piece.text), out);
  ChoiceFinishedEvent end{.reason = ReplyFinish::kStop};
  if (token != eos_) end.stop_token = token;
  End(std::move(end), out);
}

void ReplyBuilder::Finish(ReplyFinish reason, std::vector<ReplyEvent>& out) {
  if (!finished_) End({.reason = reason}, out);
}

void ReplyBuilder::Show(std::string text, std::vector<ReplyEvent>& out) {
  if (text.empty()) return;
  auto* last = out.empty() ? nullptr : std::get_if<DeltaEvent>(&out.back());
  if (last == nullptr) last = &std::get<DeltaEvent>(out.emplace_back(DeltaEvent{}));
  last->text += text;
  MoveTokens(unshown_, last->tokens);
}

void ReplyBuilder::End(ChoiceFinishedEvent end, std::vector<ReplyEvent>& out) {
  finished_ = true;
  if (!ended_by_text_) Show(text_.Flush(), out);
  MoveTokens(unshown_, end.tokens);
  out.push_back(std::move(end));
}

}  // namespace levin
