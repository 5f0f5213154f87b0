#include "router/inference/reply_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "router/text/tokenizer.h"

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
      skip_special_tokens_(request.skip_special_tokens),
      tokenizer_(tokenizer),
      text_(tokenizer, {.stop = request.stop,
                        .skip_special_tokens = request.skip_special_tokens,
                        .include_stop = request.include_stop}) {
  if (request.parser) parser_.emplace(*request.parser);
}

void ReplyBuilder::Push(std::span<const SampledToken> tokens, std::vector<ReplyEvent>& out) {
  for (const SampledToken& token : tokens) {
    if (finished_) return;
    PushOne(token, out);
  }
}

void ReplyBuilder::PushOne(const SampledToken& token, std::vector<ReplyEvent>& out) {
  if (completion_tokens_++ == 0) out.push_back(FirstTokenEvent{});
  unshown_.push_back(token);
  if (parser_) {
    text_begins_.push_back(text_bytes_);
    const bool hidden = skip_special_tokens_ && tokenizer_.IsSpecial(token.token);
    if (!hidden) text_bytes_ += tokenizer_.Bytes(token.token).size();
  }
  if (std::find(stop_ids_.begin(), stop_ids_.end(), token.token) != stop_ids_.end()) {
    return PushStopId(token.token, out);
  }
  TextStream::Piece piece = text_.Push(token.token, completion_tokens_ >= min_tokens_);
  const bool stopped = piece.stopped;
  std::string stop_string = std::move(piece.stop_string);
  Show(std::move(piece), out);
  if (stopped) {
    ended_by_text_ = true;
    return End({.reason = ReplyFinish::kStop, .stop_string = std::move(stop_string)}, out);
  }
  if (completion_tokens_ >= max_tokens_) End({.reason = ReplyFinish::kLength}, out);
}

// The end token or a stop id: its text is hidden, unless it is asked for like a stop string's.
void ReplyBuilder::PushStopId(TokenId token, std::vector<ReplyEvent>& out) {
  Show(include_stop_ ? text_.Push(token, /*check_stop=*/false) : text_.PushHidden(token), out);
  ChoiceFinishedEvent end{.reason = ReplyFinish::kStop};
  if (token != eos_) end.stop_token = token;
  End(std::move(end), out);
}

void ReplyBuilder::Finish(ReplyFinish reason, std::vector<ReplyEvent>& out) {
  if (!finished_) End({.reason = reason}, out);
}

void ReplyBuilder::Show(TextStream::Piece piece, std::vector<ReplyEvent>& out) {
  if (parser_) return ShowParts(parser_->Push(piece.text, piece.specials), out);
  ShowText(TextKind::kContent, std::move(piece.text), out);
}

void ReplyBuilder::ShowParts(std::vector<ReplyPart> parts, std::vector<ReplyEvent>& out) {
  for (ReplyPart& part : parts) {
    switch (part.kind) {
      case ReplyPart::Kind::kContent:
        ShowText(TextKind::kContent, std::move(part.text), out);
        break;
      case ReplyPart::Kind::kReasoning:
        ShowText(TextKind::kReasoning, std::move(part.text), out);
        break;
      case ReplyPart::Kind::kToolStart:
        out.push_back(ToolStartEvent{part.index, std::move(part.id), std::move(part.name),
                                     std::exchange(unshown_, {})});
        break;
      case ReplyPart::Kind::kToolArgs:
        out.push_back(ToolArgsEvent{part.index, std::move(part.text), std::exchange(unshown_, {})});
        break;
    }
  }
}

// Neighbours of one kind, of several tokens that came at once, are one delta.
void ReplyBuilder::ShowText(TextKind kind, std::string text, std::vector<ReplyEvent>& out) {
  if (text.empty()) return;
  auto* last = out.empty() ? nullptr : std::get_if<DeltaEvent>(&out.back());
  if (last == nullptr || last->kind != kind) {
    last = &std::get<DeltaEvent>(out.emplace_back(DeltaEvent{kind, {}, {}}));
  }
  last->text += text;
  MoveTokens(unshown_, last->tokens);
}

void ReplyBuilder::End(ChoiceFinishedEvent end, std::vector<ReplyEvent>& out) {
  finished_ = true;
  if (!ended_by_text_) Show(text_.FlushPiece(), out);
  if (parser_) {
    const bool by_length = end.reason == ReplyFinish::kLength;
    ShowParts(parser_->Flush(by_length ? FinishReason::kLength : FinishReason::kStop), out);
    if (parser_->ends_in_tool_calls()) end.reason = ReplyFinish::kToolCalls;
    end.content_is_null = parser_->content_is_null();
    CountReasoning();
  }
  MoveTokens(unshown_, end.tokens);
  finish_reason_ = end.reason;
  out.push_back(std::move(end));
}

// Tokens whose text begins before the end of the closing tag.
void ReplyBuilder::CountReasoning() {
  const size_t end = parser_->reasoning_bytes();
  reasoning_tokens_ =
      std::lower_bound(text_begins_.begin(), text_begins_.end(), end) - text_begins_.begin();
}

}  // namespace levin
