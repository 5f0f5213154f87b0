#include "tests/worker/engine/sim_router.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace levin::testing {
namespace {

constexpr uint64_t kStepsToGiveBack = 2;

bool IsPrefix(const std::vector<TokenId>& part, const std::vector<TokenId>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

}  // namespace

void SimRouter::Send(decltype(RouterCommand::what) what) {
  CHECK(inbox_.TryPush({number_, std::move(what)}));
}

void SimRouter::Act() {
  const uint64_t dice = Below(100);
  if (dice < 30)
    Submit();
  else if (dice < 36)
    CancelOne();
  else if (dice < 46)
    SendFinishedSet();
  else if (dice < 49)
    Resubmit();
  else if (dice < 51)
    CancelBeforeSubmit();
}

Generation SimRouter::Draw() {
  Generation generation;
  generation.ordinal = next_ordinal_++;
  generation.request_id = std::to_string(number_) + "/" + std::to_string(generation.ordinal);
  const auto vocab = static_cast<uint64_t>(options_.vocab_size);
  const uint64_t prompt = Below(5) == 0 ? 1 : 1 + Below(50);
  for (uint64_t i = 0; i < prompt; ++i)
    generation.prompt.push_back(static_cast<TokenId>(Below(vocab)));
  generation.max_new_tokens = static_cast<int32_t>(Below(8) == 0 ? 0 : Below(25));
  SamplingParams& sampling = generation.sampling;
  sampling.seed = next_seed_++;
  if (Below(3) == 0) sampling.temperature = 0;
  if (Below(4) == 0) sampling.top_k = 3;
  if (Below(4) == 0) sampling.repetition_penalty = 1.3f;
  if (Below(4) == 0) sampling.bad_sequences = {{1, 2}, {5}};
  if (Below(2) == 0) sampling.stop_ids = {3, 4};
  if (Below(4) == 0) sampling.min_tokens = 4;
  if (Below(10) == 0)
    generation.deadline_unix_ms = clock_.UnixMs() + static_cast<int64_t>(Below(20));
  return generation;
}

void SimRouter::Submit() {
  const Generation generation = Draw();
  Request request;
  request.generation = generation;
  requests_.emplace(generation.ordinal, std::move(request));
  Send(SubmitCommand{generation});
}

void SimRouter::CancelBeforeSubmit() {
  const Generation generation = Draw();
  Request request;
  request.generation = generation;
  request.may_be_cancelled = true;
  requests_.emplace(generation.ordinal, std::move(request));
  Send(CancelCommand{.ordinal = generation.ordinal, .attempt = 1});
  Send(SubmitCommand{generation});
}

void SimRouter::Resubmit() {
  Request* request = AnyRequest();
  if (request == nullptr || !request->live) return;
  ++request->resubmits;
  Send(SubmitCommand{request->generation});
}

void SimRouter::CancelOne() {
  Request* request = AnyRequest();
  if (request == nullptr) return;
  request->may_be_cancelled = true;
  if (!request->cancelled_at) request->cancelled_at = step_;
  Send(CancelCommand{.ordinal = request->generation.ordinal, .attempt = 1});
}

void SimRouter::CancelEverything() {
  for (auto& [ordinal, request] : requests_) {
    request.may_be_cancelled = true;
    Send(CancelCommand{.ordinal = ordinal, .attempt = 1});
  }
}

// Lists what still lives for the clients; now and then forgets one, as after a lost Cancel.
void SimRouter::SendFinishedSet() {
  listed_.clear();
  watermark_ = next_ordinal_ - 1;
  for (auto& [ordinal, request] : requests_) {
    const bool over = request.end || request.failed;
    if (over || Below(20) == 0) {
      request.live = false;
      request.may_be_cancelled = true;
      if (!over && !request.cancelled_at) request.cancelled_at = step_;
    }
    if (request.live) listed_.push_back(ordinal);
  }
  Send(FinishedSetCommand{watermark_, listed_});
}

void SimRouter::Leave() { Send(RouterGone{}); }

SimRouter::Request* SimRouter::AnyRequest() {
  if (requests_.empty()) return nullptr;
  const uint64_t recent = std::min<uint64_t>(requests_.size(), 10);
  return &std::prev(requests_.end(), static_cast<ptrdiff_t>(1 + Below(recent)))->second;
}

void SimRouter::Hear(const RouterEvent& event) {
  if (const auto* ack = std::get_if<FreedAckEvent>(&event.what)) return CheckFreed(*ack);
  if (const auto* run = std::get_if<TokensEvent>(&event.what)) {
    Request& request = requests_.at(run->ordinal);
    EXPECT_FALSE(request.end || request.failed) << "a token after the end, " << run->ordinal;
    EXPECT_EQ(run->first_index, static_cast<int64_t>(request.tokens.size()));
    for (const SampledToken& token : run->tokens) request.tokens.push_back(token.token);
  } else if (const auto* end = std::get_if<FinishedEvent>(&event.what)) {
    CheckEnd(requests_.at(end->ordinal), *end);
  } else if (const auto* error = std::get_if<ErrorEvent>(&event.what)) {
    CheckError(requests_.at(error->ordinal), *error);
  }
}

void SimRouter::CheckEnd(Request& request, const FinishedEvent& end) {
  if (request.end) {  // only as the answer to a repeated Submit, and the same one
    EXPECT_GT(request.resubmits--, 0) << "ended twice";
    EXPECT_EQ(request.end->ids_hash, end.ids_hash);
    return;
  }
  EXPECT_FALSE(request.failed);
  request.end = end;
  const ScriptedOutput alone = RunAlone(request.generation, sampler_, options_.vocab_size);
  EXPECT_EQ(end.ids_hash,
            XXH3_64bits(request.tokens.data(), request.tokens.size() * sizeof(TokenId)));
  EXPECT_EQ(end.usage.output_tokens, static_cast<int64_t>(request.tokens.size()));
  switch (end.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      EXPECT_EQ(request.tokens, alone.tokens) << "not what it gives alone";
      EXPECT_EQ(end.reason, alone.reason);
      ++finished_whole_;
      return;
    case FinishReason::kCancelled:
      EXPECT_TRUE(request.may_be_cancelled);
      EXPECT_TRUE(IsPrefix(request.tokens, alone.tokens));
      return;
    case FinishReason::kDeadline:
      EXPECT_NE(request.generation.deadline_unix_ms, 0);
      EXPECT_LE(request.generation.deadline_unix_ms, clock_.UnixMs());
      EXPECT_TRUE(IsPrefix(request.tokens, alone.tokens));
      return;
    default:
      FAIL() << Name(end.reason);
  }
}

void SimRouter::CheckError(Request& request, const ErrorEvent& error) {
  const std::string& reason = error.status.reason();
  if (request.end || request.failed) {  // a repeated Submit of what is over
    EXPECT_GT(request.resubmits--, 0) << reason;
    return;
  }
  request.failed = true;
  if (reason == "CACHE_NEVER_FITS")
    EXPECT_GT(error.need_blocks, error.total_blocks);
  else
    EXPECT_TRUE(reason == "QUEUE_FULL" || (reason == "CANCELLED" && !request.live)) << reason;
}

void SimRouter::CheckFreed(const FreedAckEvent& ack) const {
  for (const auto& [ordinal, request] : requests_) {
    if (ordinal > ack.watermark) break;
    if (std::binary_search(ack.unfreed.begin(), ack.unfreed.end(), ordinal)) continue;
    EXPECT_FALSE(Held(request)) << "acknowledged as freed, but held: ordinal " << ordinal;
  }
}

void SimRouter::BeginRound(uint64_t step) {
  step_ = step;
  for (const auto& [ordinal, request] : requests_)
    if (request.cancelled_at && step > *request.cancelled_at + kStepsToGiveBack) {
      EXPECT_FALSE(Held(request)) << "cancelled in step " << *request.cancelled_at << ", ordinal "
                                  << ordinal << " holds memory in " << step;
    }
  std::erase_if(requests_, [&](const auto& entry) {
    const Request& request = entry.second;
    return (request.end || request.failed) && !request.live && !Held(request);
  });
}

bool SimRouter::Held(const Request& request) const {
  return audit_.Holds(audit_.SequenceOf(request.generation.sampling.seed));
}

void SimRouter::ExpectAllOver() const {
  for (const auto& [ordinal, request] : requests_)
    EXPECT_TRUE(request.end || request.failed) << "never ended: ordinal " << ordinal;
}

}  // namespace levin::testing
