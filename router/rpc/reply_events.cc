#include "router/rpc/reply_events.h"

#include <cmath>
#include <utility>
#include <variant>

namespace levin {
namespace {

constexpr float kLeastLogprob = -9999.0f;

float Finite(float logprob) { return std::isfinite(logprob) ? logprob : kLeastLogprob; }

void SetDuration(int64_t us, google::protobuf::Duration* out) {
  out->set_seconds(us / 1'000'000);
  out->set_nanos(static_cast<int32_t>(us % 1'000'000 * 1'000));
}

v1::FinishReason ToProto(ReplyFinish reason) {
  switch (reason) {
    case ReplyFinish::kStop:
      return v1::FINISH_REASON_STOP;
    case ReplyFinish::kLength:
      return v1::FINISH_REASON_LENGTH;
    case ReplyFinish::kToolCalls:
      return v1::FINISH_REASON_TOOL_CALLS;
    case ReplyFinish::kCancelled:
      return v1::FINISH_REASON_CANCELLED;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void SetText(TextKind, const std::string& text, v1::Delta& delta) { delta.set_text(text); }
void SetText(TextKind kind, const std::string& text, v1::ChatDelta& delta) {
  if (kind == TextKind::kReasoning) {
    delta.set_reasoning(text);
  } else {
    delta.set_content(text);
  }
}

// The text of `delta` that more of `kind` may be appended to.
std::string* TextOf(TextKind, v1::Delta& delta) { return delta.mutable_text(); }
std::string* TextOf(TextKind kind, v1::ChatDelta& delta) {
  const bool reasoning = kind == TextKind::kReasoning;
  if (reasoning && delta.has_reasoning()) return delta.mutable_reasoning();
  if (!reasoning && delta.has_content()) return delta.mutable_content();
  return nullptr;
}

// Completions never call tools.
void SetToolStart(const ToolStartEvent&, v1::Delta&) {}
void SetToolStart(const ToolStartEvent& event, v1::ChatDelta& delta) {
  v1::ToolCallStart* start = delta.mutable_tool_call_start();
  start->set_index(static_cast<uint32_t>(event.index));
  start->set_id(event.id);
  start->set_name(event.name);
}
void SetToolArgs(const ToolArgsEvent&, v1::Delta&) {}
void SetToolArgs(const ToolArgsEvent& event, v1::ChatDelta& delta) {
  v1::ToolCallArguments* arguments = delta.mutable_tool_call_arguments();
  arguments->set_index(static_cast<uint32_t>(event.index));
  arguments->set_json_fragment(event.fragment);
}

void SetFinish(const ChoiceFinishedEvent& event, v1::ChoiceFinished* out) {
  out->set_finish_reason(ToProto(event.reason));
  if (event.stop_string) out->set_stop_string(*event.stop_string);
  if (event.stop_token) out->set_stop_token_id(static_cast<uint32_t>(*event.stop_token));
}

}  // namespace

template <typename Event>
ReplyEvents<Event>::ReplyEvents(ReplyFacts facts, const Tokenizer& tokenizer)
    : facts_(std::move(facts)), tokenizer_(tokenizer) {
  usage_.set_prompt_tokens(facts_.prompt_ids.size());
  choice_.set_text(facts_.echo);
}

template <typename Event>
void ReplyEvents<Event>::Push(const ReplyEvent& event, std::deque<Event>& out) {
  if (const auto* started = std::get_if<StartedEvent>(&event)) {
    return Start(started->cached_tokens, out);
  }
  if (std::holds_alternative<FirstTokenEvent>(event)) return;
  if (std::holds_alternative<FailedEvent>(event)) return;  // becomes the status of the call
  Start(0, out);  // may be missing when the reply ends at once
  if (const auto* delta = std::get_if<DeltaEvent>(&event)) {
    return Text(delta->kind, delta->text, delta->tokens, out);
  }
  if (const auto* tool = std::get_if<ToolStartEvent>(&event)) return ToolStart(*tool, out);
  if (const auto* arguments = std::get_if<ToolArgsEvent>(&event)) return ToolArgs(*arguments, out);
  if (const auto* finish = std::get_if<ChoiceFinishedEvent>(&event)) return Finish(*finish, out);
  Complete(std::get<CompletedEvent>(event), out);
}

template <typename Event>
void ReplyEvents<Event>::Start(int64_t cached_tokens, std::deque<Event>& out) {
  if (std::exchange(started_, true)) return;
  usage_.set_cached_tokens(static_cast<uint64_t>(cached_tokens));
  if (facts_.form.whole) return;
  v1::Started* started = out.emplace_back().mutable_started();
  started->set_generation_id(facts_.generation_id);
  started->set_prompt_tokens(facts_.prompt_ids.size());
  started->set_cached_tokens(static_cast<uint64_t>(cached_tokens));
  started->set_max_tokens(static_cast<uint64_t>(facts_.max_tokens));
  if (facts_.form.return_token_ids) {
    for (TokenId id : facts_.prompt_ids) started->add_prompt_token_ids(static_cast<uint32_t>(id));
  }
  if (!facts_.echo.empty()) Text(TextKind::kContent, facts_.echo, {}, out);
}

template <typename Event>
void ReplyEvents<Event>::Text(TextKind kind, const std::string& text,
                              std::span<const SampledToken> tokens, std::deque<Event>& out) {
  usage_.set_completion_tokens(usage_.completion_tokens() + tokens.size());
  if (facts_.form.whole) {
    (kind == TextKind::kReasoning ? choice_.mutable_reasoning() : choice_.mutable_text())
        ->append(text);
    return AddTokens(tokens, choice_);
  }
  if (!out.empty() && out.back().has_delta()) {
    auto* delta = out.back().mutable_delta();
    if (std::string* so_far = TextOf(kind, *delta)) {
      so_far->append(text);
      AddTokens(tokens, *delta);
      return AddUsage(*delta);
    }
  }
  auto* delta = out.emplace_back().mutable_delta();
  SetText(kind, text, *delta);
  AddTokens(tokens, *delta);
  AddUsage(*delta);
}

template <typename Event>
void ReplyEvents<Event>::ToolStart(const ToolStartEvent& event, std::deque<Event>& out) {
  usage_.set_completion_tokens(usage_.completion_tokens() + event.tokens.size());
  if (facts_.form.whole) {
    v1::ToolCall* call = choice_.add_tool_calls();
    call->set_id(event.id);
    call->set_name(event.name);
    return AddTokens(event.tokens, choice_);
  }
  auto* delta = out.emplace_back().mutable_delta();
  SetToolStart(event, *delta);
  AddTokens(event.tokens, *delta);
  AddUsage(*delta);
}

template <typename Event>
void ReplyEvents<Event>::ToolArgs(const ToolArgsEvent& event, std::deque<Event>& out) {
  usage_.set_completion_tokens(usage_.completion_tokens() + event.tokens.size());
  if (facts_.form.whole) {
    if (event.index < choice_.tool_calls_size()) {
      choice_.mutable_tool_calls(event.index)->mutable_arguments_json()->append(event.fragment);
    }
    return AddTokens(event.tokens, choice_);
  }
  auto* delta = out.emplace_back().mutable_delta();
  SetToolArgs(event, *delta);
  AddTokens(event.tokens, *delta);
  AddUsage(*delta);
}

template <typename Event>
void ReplyEvents<Event>::Finish(const ChoiceFinishedEvent& event, std::deque<Event>& out) {
  if (facts_.form.whole) {
    usage_.set_completion_tokens(usage_.completion_tokens() + event.tokens.size());
    AddTokens(event.tokens, choice_);
    return SetFinish(event, choice_.mutable_finished());
  }
  const bool asked = facts_.form.return_token_ids || facts_.form.logprobs;
  if (asked && !event.tokens.empty()) {  // tokens without text have no other place
    Text(TextKind::kContent, "", event.tokens, out);
  }
  SetFinish(event, out.emplace_back().mutable_choice_finished());
}

template <typename Event>
void ReplyEvents<Event>::Complete(const CompletedEvent& event, std::deque<Event>& out) {
  v1::Completed* completed = out.emplace_back().mutable_completed();
  v1::Usage* usage = completed->mutable_usage();
  usage->set_prompt_tokens(static_cast<uint64_t>(event.usage.prompt_tokens));
  usage->set_cached_tokens(static_cast<uint64_t>(event.usage.cached_tokens));
  usage->set_completion_tokens(static_cast<uint64_t>(event.usage.completion_tokens));
  usage->set_reasoning_tokens(static_cast<uint64_t>(event.usage.reasoning_tokens));
  v1::Timings* timings = completed->mutable_timings();
  SetDuration(event.timings.queue_us, timings->mutable_queue());
  SetDuration(event.timings.prefill_us, timings->mutable_prefill());
  SetDuration(event.timings.first_token_us, timings->mutable_first_token());
  SetDuration(event.timings.decode_us, timings->mutable_decode());
  completed->set_fingerprint(facts_.fingerprint);
  if (facts_.form.whole) *completed->add_choices() = std::move(choice_);
}

template <typename Event>
template <typename Message>
void ReplyEvents<Event>::AddTokens(std::span<const SampledToken> tokens, Message& message) const {
  for (const SampledToken& token : tokens) {
    if (facts_.form.return_token_ids) message.add_token_ids(static_cast<uint32_t>(token.token));
    if (!facts_.form.logprobs) continue;
    v1::TokenLogprob* logprob = message.add_logprobs();
    logprob->set_token_id(static_cast<uint32_t>(token.token));
    logprob->set_token(std::string(tokenizer_.Bytes(token.token)));
    logprob->set_logprob(Finite(token.logprob));
    logprob->set_rank(static_cast<uint32_t>(token.rank));
    for (const TopLogprob& one : token.top) {
      v1::TopLogprob* top = logprob->add_top();
      top->set_token_id(static_cast<uint32_t>(one.token));
      top->set_token(std::string(tokenizer_.Bytes(one.token)));
      top->set_logprob(Finite(one.logprob));
    }
  }
}

template <typename Event>
template <typename Delta>
void ReplyEvents<Event>::AddUsage(Delta& delta) const {
  if (facts_.form.usage_every_event) *delta.mutable_usage() = usage_;
}

template class ReplyEvents<v1::GenerateEvent>;
template class ReplyEvents<v1::ChatEvent>;

}  // namespace levin
