#include "worker/eval/eval_feeder.h"

#include <string>
#include <utility>
#include <variant>

namespace levin {
namespace {

// Ordinals start at 1.
size_t PromptOf(uint64_t ordinal) { return static_cast<size_t>(ordinal - 1); }

Status EndStatus(const FinishedEvent& end) {
  if (end.reason == FinishReason::kLength) return Status::Ok();
  return Internal("ended with '" + std::string(Name(end.reason)) + "', expected 'length'");
}

}  // namespace

EvalFeeder::EvalFeeder(const EvalJob& job, Mailbox<RouterCommand>& inbox)
    : job_(job), inbox_(inbox), greedy_(job.prompts.size()) {}

Status EvalFeeder::Start() {
  const size_t first = job_.batch ? job_.prompts.size() : 1;
  for (size_t prompt = 0; prompt < first; ++prompt) RETURN_IF_ERROR(Submit(prompt));
  return Status::Ok();
}

Status EvalFeeder::Submit(size_t prompt) {
  Generation generation;
  generation.ordinal = prompt + 1;
  generation.request_id = std::to_string(prompt);
  generation.prompt = job_.prompts[prompt].ids;
  generation.max_new_tokens = job_.greedy;
  generation.sampling.temperature = 0;
  if (inbox_.TryPush({0, SubmitCommand{std::move(generation)}})) return Status::Ok();
  return ResourceExhausted("prompt '" + job_.prompts[prompt].name +
                           "' does not fit into the engine's inbox");
}

void EvalFeeder::Deliver(std::vector<RouterEvent> events) {
  for (RouterEvent& event : events) {
    if (const auto* run = std::get_if<TokensEvent>(&event.what)) {
      for (const SampledToken& token : run->tokens)
        greedy_[PromptOf(run->ordinal)].push_back(token.token);
    } else if (const auto* end = std::get_if<FinishedEvent>(&event.what)) {
      OnEnd(PromptOf(end->ordinal), EndStatus(*end));
    } else if (auto* error = std::get_if<ErrorEvent>(&event.what)) {
      OnEnd(PromptOf(error->ordinal), std::move(error->status));
    }
  }
}

void EvalFeeder::OnEnd(size_t prompt, Status status) {
  ++ended_;
  if (!status.ok() && status_.ok())
    status_ = std::move(status).Annotate("prompt '" + job_.prompts[prompt].name + "'");
  const bool more = status_.ok() && ended_ < job_.prompts.size();
  if (more && !job_.batch) status_ = Submit(ended_);
  if (!more || !status_.ok()) inbox_.Close();
}

}  // namespace levin
