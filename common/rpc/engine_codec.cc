#include "common/rpc/engine_codec.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "common/base/error_table.h"

namespace levin {
namespace {

static_assert(std::endian::native == std::endian::little, "hashes are over little-endian ids");

template <typename Repeated>
Result<std::vector<TokenId>> Ids(const Repeated& proto, const char* field) {
  std::vector<TokenId> ids;
  ids.reserve(static_cast<size_t>(proto.size()));
  for (const uint32_t id : proto) {
    if (id > static_cast<uint32_t>(std::numeric_limits<TokenId>::max())) {
      return Error(InvalidArgument(std::string(field) + ": token id " + std::to_string(id) +
                                   " is above 2^31 - 1")
                       .WithParam(field));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

template <typename Repeated>
void PutIds(std::span<const TokenId> ids, Repeated* proto) {
  proto->Reserve(static_cast<int>(ids.size()));
  for (const TokenId id : ids) proto->Add(static_cast<uint32_t>(id));
}

Status CheckFinite(const v1::Sampling& proto) {
  const std::pair<const char*, float> values[] = {
      {"temperature", proto.temperature()},
      {"top_p", proto.top_p()},
      {"min_p", proto.min_p()},
      {"repetition_penalty", proto.repetition_penalty()},
      {"frequency_penalty", proto.frequency_penalty()},
      {"presence_penalty", proto.presence_penalty()}};
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value))
      return InvalidArgument(std::string("sampling.") + name + " is not a finite number")
          .WithParam(name);
  }
  for (const float value : proto.bias_values()) {
    if (!std::isfinite(value))
      return InvalidArgument("sampling.bias_values has a value that is not finite")
          .WithParam("bias_values");
  }
  return Status::Ok();
}

Status CheckBuilt(const v1::Submit& proto) {
  if (proto.n() > 1)
    return Unimplemented("submit: n is " + std::to_string(proto.n()) + ", only 1 is built")
        .WithParam("n");
  if (proto.has_prompt_logprobs())
    return Unimplemented("submit: prompt_logprobs are not built").WithParam("prompt_logprobs");
  if (!proto.prompt_handle().empty())
    return Unimplemented("submit: prompt handles are not built").WithParam("prompt_handle");
  if (proto.from_index() != 0)
    return Unimplemented("submit: re-attach (from_index) is not built").WithParam("from_index");
  if (proto.resume_ids_size() != 0)
    return Unimplemented("submit: replay (resume_ids) is not built").WithParam("resume_ids");
  return Status::Ok();
}

template <typename Set>
void PutOrdinals(const OrdinalSet& set, Set* proto) {
  proto->set_watermark(set.watermark);
  uint64_t before = 0;
  for (const uint64_t ordinal : set.live) {
    proto->add_live_delta(ordinal - before);
    before = ordinal;
  }
}

template <typename Set>
Result<OrdinalSet> Ordinals(const Set& proto) {
  OrdinalSet set{.watermark = proto.watermark(), .live = {}};
  set.live.reserve(static_cast<size_t>(proto.live_delta_size()));
  uint64_t ordinal = 0;
  for (const uint64_t delta : proto.live_delta()) {
    if (delta == 0 || delta > proto.watermark() - ordinal) {
      return Error(InvalidArgument(
          "live ordinals: " + std::to_string(ordinal) + " + " + std::to_string(delta) +
          " does not rise or is above the watermark " + std::to_string(proto.watermark())));
    }
    ordinal += delta;
    set.live.push_back(ordinal);
  }
  return set;
}

}  // namespace

void ToProto(const SamplingParams& params, v1::Sampling* proto) {
  proto->set_temperature(params.temperature);
  proto->set_top_p(params.top_p);
  proto->set_top_k(params.top_k);
  proto->set_min_p(params.min_p);
  proto->set_repetition_penalty(params.repetition_penalty);
  proto->set_frequency_penalty(params.frequency_penalty);
  proto->set_presence_penalty(params.presence_penalty);
  proto->set_seed(params.seed);
  for (const auto& [id, value] : params.logit_bias) {
    proto->add_bias_ids(static_cast<uint32_t>(id));
    proto->add_bias_values(value);
  }
  PutIds(params.allowed_ids, proto->mutable_allowed_ids());
  for (const std::vector<TokenId>& sequence : params.bad_sequences) {
    PutIds(sequence, proto->add_bad_sequences()->mutable_ids());
  }
  PutIds(params.stop_ids, proto->mutable_stop_ids());
  proto->set_min_tokens(params.min_tokens);
  if (params.logprobs >= 0) proto->set_logprobs(static_cast<uint32_t>(params.logprobs));
}

Result<SamplingParams> FromProto(const v1::Sampling& proto) {
  RETURN_ERROR_IF(CheckFinite(proto));
  if (proto.bias_ids_size() != proto.bias_values_size()) {
    return Error(InvalidArgument("sampling: " + std::to_string(proto.bias_ids_size()) +
                                 " bias_ids but " + std::to_string(proto.bias_values_size()) +
                                 " bias_values")
                     .WithParam("bias_ids"));
  }
  SamplingParams params;
  params.temperature = proto.temperature();
  params.top_p = proto.top_p();
  params.top_k = proto.top_k();
  params.min_p = proto.min_p();
  params.repetition_penalty = proto.repetition_penalty();
  params.frequency_penalty = proto.frequency_penalty();
  params.presence_penalty = proto.presence_penalty();
  params.seed = proto.seed();
  ASSIGN_OR_RETURN(const std::vector<TokenId> bias_ids, Ids(proto.bias_ids(), "bias_ids"));
  for (size_t i = 0; i < bias_ids.size(); ++i) {
    params.logit_bias.emplace_back(bias_ids[i], proto.bias_values(static_cast<int>(i)));
  }
  ASSIGN_OR_RETURN(params.allowed_ids, Ids(proto.allowed_ids(), "allowed_ids"));
  for (const v1::IdSequence& sequence : proto.bad_sequences()) {
    ASSIGN_OR_RETURN(std::vector<TokenId> ids, Ids(sequence.ids(), "bad_sequences"));
    params.bad_sequences.push_back(std::move(ids));
  }
  ASSIGN_OR_RETURN(params.stop_ids, Ids(proto.stop_ids(), "stop_ids"));
  params.min_tokens = proto.min_tokens();
  if (proto.has_logprobs()) {
    if (proto.logprobs() > 1u << 20) {
      return Error(InvalidArgument("sampling.logprobs is " + std::to_string(proto.logprobs()) +
                                   ", above 2^20")
                       .WithParam("logprobs"));
    }
    params.logprobs = static_cast<int32_t>(proto.logprobs());
  }
  return params;
}

void ToProto(const Generation& generation, v1::Submit* proto) {
  proto->set_ordinal(generation.ordinal);
  proto->set_request_id(generation.request_id);
  proto->set_attempt(generation.attempt);
  proto->set_deadline_unix_ms(generation.deadline_unix_ms);
  PutIds(generation.prompt, proto->mutable_prompt_ids());
  proto->set_prompt_hash(HashIds(generation.prompt));
  ToProto(generation.sampling, proto->mutable_sampling());
  proto->set_max_new_tokens(generation.max_new_tokens);
  proto->set_n(1);
}

Result<Generation> FromProto(const v1::Submit& proto) {
  RETURN_ERROR_IF(CheckBuilt(proto));
  if (proto.ordinal() == 0)
    return Error(InvalidArgument("submit: ordinal is 0, ordinals start at 1"));
  if (proto.request_id().size() != 16) {
    return Error(InvalidArgument("submit: request_id has " +
                                 std::to_string(proto.request_id().size()) +
                                 " bytes, expected 16"));
  }
  if (proto.max_new_tokens() < 0 || proto.max_new_tokens() > std::numeric_limits<int32_t>::max()) {
    return Error(InvalidArgument("submit: max_new_tokens is " +
                                 std::to_string(proto.max_new_tokens()) +
                                 ", expected 0 to 2^31 - 1")
                     .WithParam("max_tokens"));
  }
  Generation generation;
  generation.ordinal = proto.ordinal();
  generation.request_id = proto.request_id();
  generation.attempt = proto.attempt();
  generation.deadline_unix_ms = proto.deadline_unix_ms();
  ASSIGN_OR_RETURN(generation.prompt, Ids(proto.prompt_ids(), "prompt_ids"));
  if (proto.prompt_hash() != 0 && proto.prompt_hash() != HashIds(generation.prompt)) {
    return Error(Status(Code::kDataLoss, "PROMPT_HASH_MISMATCH",
                        "submit: the prompt's ids do not have the given hash"));
  }
  ASSIGN_OR_RETURN(generation.sampling, FromProto(proto.sampling()));
  generation.max_new_tokens = static_cast<int32_t>(proto.max_new_tokens());
  return generation;
}

void ToProto(const TokenRunView& run, bool with_logprobs, v1::TokenRun* proto) {
  proto->set_ordinal(run.ordinal);
  proto->set_first_index(static_cast<uint64_t>(run.first_index));
  for (const SampledToken& token : run.tokens) {
    proto->add_ids(static_cast<uint32_t>(token.token));
    if (!with_logprobs) continue;
    v1::Logprob* logprob = proto->add_logprobs();
    logprob->set_logprob(token.logprob);
    logprob->set_rank(static_cast<uint32_t>(token.rank));
    for (const TopLogprob& top : token.top) {
      logprob->add_top_ids(static_cast<uint32_t>(top.token));
      logprob->add_top_logprobs(top.logprob);
    }
  }
}

void AppendRun(v1::TokenRun&& more, v1::TokenRun* run) {
  run->mutable_ids()->MergeFrom(more.ids());
  std::move(more.mutable_logprobs()->begin(), more.mutable_logprobs()->end(),
            google::protobuf::RepeatedFieldBackInserter(run->mutable_logprobs()));
}

Result<std::vector<SampledToken>> TokensFromProto(const v1::TokenRun& proto) {
  if (proto.logprobs_size() != 0 && proto.logprobs_size() != proto.ids_size()) {
    return Error(InvalidArgument("token run: " + std::to_string(proto.ids_size()) + " ids but " +
                                 std::to_string(proto.logprobs_size()) + " logprobs"));
  }
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids, Ids(proto.ids(), "ids"));
  std::vector<SampledToken> tokens(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    tokens[i].token = ids[i];
    if (proto.logprobs_size() == 0) continue;
    const v1::Logprob& logprob = proto.logprobs(static_cast<int>(i));
    tokens[i].logprob = logprob.logprob();
    tokens[i].rank = static_cast<int32_t>(logprob.rank());
    if (logprob.top_ids_size() != logprob.top_logprobs_size()) {
      return Error(InvalidArgument("token run: top_ids and top_logprobs differ in length"));
    }
    ASSIGN_OR_RETURN(const std::vector<TokenId> top, Ids(logprob.top_ids(), "top_ids"));
    for (size_t k = 0; k < top.size(); ++k) {
      tokens[i].top.push_back({top[k], logprob.top_logprobs(static_cast<int>(k))});
    }
  }
  return tokens;
}

v1::EndReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return v1::END_REASON_UNSPECIFIED;
    case FinishReason::kStop:
      return v1::END_REASON_STOP_ID;
    case FinishReason::kLength:
      return v1::END_REASON_LENGTH;
    case FinishReason::kCancelled:
      return v1::END_REASON_CANCELLED;
    case FinishReason::kDeadline:
      return v1::END_REASON_DEADLINE;
    case FinishReason::kError:
      return v1::END_REASON_ERROR;
  }
  return v1::END_REASON_ERROR;
}

FinishReason FromProto(v1::EndReason reason) {
  switch (reason) {
    case v1::END_REASON_STOP_ID:
      return FinishReason::kStop;
    case v1::END_REASON_LENGTH:
      return FinishReason::kLength;
    case v1::END_REASON_CANCELLED:
      return FinishReason::kCancelled;
    case v1::END_REASON_DEADLINE:
      return FinishReason::kDeadline;
    default:
      return FinishReason::kError;
  }
}

void ToProto(const Usage& usage, v1::EngineUsage* proto) {
  proto->set_prompt_tokens(static_cast<uint64_t>(usage.prompt_tokens));
  proto->set_cached_tokens(static_cast<uint64_t>(usage.cached_tokens));
  proto->set_output_tokens(static_cast<uint64_t>(usage.output_tokens));
  proto->set_queue_us(static_cast<uint64_t>(usage.queue_us));
  proto->set_prefill_us(static_cast<uint64_t>(usage.prefill_us));
  proto->set_decode_us(static_cast<uint64_t>(usage.decode_us));
}

Usage FromProto(const v1::EngineUsage& proto) {
  return {.prompt_tokens = static_cast<int64_t>(proto.prompt_tokens()),
          .cached_tokens = static_cast<int64_t>(proto.cached_tokens()),
          .output_tokens = static_cast<int64_t>(proto.output_tokens()),
          .queue_us = static_cast<int64_t>(proto.queue_us()),
          .prefill_us = static_cast<int64_t>(proto.prefill_us()),
          .decode_us = static_cast<int64_t>(proto.decode_us())};
}

void ToProto(const Capacity& capacity, v1::Capacity* proto) {
  proto->set_total_blocks(capacity.total_blocks);
  proto->set_free_blocks(capacity.free_blocks);
  proto->set_reserved_blocks(capacity.reserved_blocks);
  proto->set_total_slots(capacity.total_slots);
  proto->set_free_slots(capacity.free_slots);
  proto->set_running(capacity.running);
  proto->set_waiting(capacity.waiting);
  proto->set_prefill_backlog_tokens(capacity.prefill_backlog_tokens);
  proto->set_submit_window(capacity.submit_window);
  proto->set_step(static_cast<uint64_t>(capacity.step));
  proto->set_draining(capacity.draining);
  proto->set_suspect(capacity.suspect);
}

Capacity FromProto(const v1::Capacity& proto, const v1::Geometry& geometry) {
  return {.total_blocks = proto.total_blocks(),
          .free_blocks = proto.free_blocks(),
          .reserved_blocks = proto.reserved_blocks(),
          .total_slots = proto.total_slots(),
          .free_slots = proto.free_slots(),
          .bytes_per_block = static_cast<int64_t>(geometry.bytes_per_block()),
          .bytes_per_slot = static_cast<int64_t>(geometry.bytes_per_slot()),
          .running = proto.running(),
          .waiting = proto.waiting(),
          .prefill_backlog_tokens = proto.prefill_backlog_tokens(),
          .submit_window = proto.submit_window(),
          .step = static_cast<int64_t>(proto.step()),
          .draining = proto.draining(),
          .suspect = proto.suspect()};
}

void ToProto(const Status& status, uint64_t ordinal, bool blame_group, v1::EngineError* proto) {
  proto->set_ordinal(ordinal);
  proto->set_code(static_cast<uint32_t>(status.code()));
  proto->set_reason(status.reason());
  proto->set_message(status.message());
  proto->set_retry(static_cast<v1::RetryClass>(RetryOf(status)));
  proto->set_retry_after_ms(status.retry_after_ms());
  proto->set_blame_group(blame_group);
}

Status FromProto(const v1::EngineError& proto) {
  const bool known =
      proto.code() > 0 && proto.code() <= static_cast<uint32_t>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(proto.code()) : Code::kUnknown, proto.reason(),
                proto.message())
      .WithRetryAfterMs(proto.retry_after_ms());
}

bool OrdinalSet::IsOver(uint64_t ordinal) const {
  return ordinal <= watermark && !std::binary_search(live.begin(), live.end(), ordinal);
}

void ToProto(const OrdinalSet& set, v1::FinishedSet* proto) { PutOrdinals(set, proto); }
void ToProto(const OrdinalSet& set, v1::FreedAck* proto) { PutOrdinals(set, proto); }
Result<OrdinalSet> FromProto(const v1::FinishedSet& proto) { return Ordinals(proto); }
Result<OrdinalSet> FromProto(const v1::FreedAck& proto) { return Ordinals(proto); }

uint64_t HashIds(std::span<const TokenId> ids) { return XXH3_64bits(ids.data(), ids.size_bytes()); }

uint64_t HashOrdinals(std::span<const uint64_t> ordinals) {
  return XXH3_64bits(ordinals.data(), ordinals.size_bytes());
}

}  // namespace levin
