#include "worker/plan/sampling_check.h"

#include <cmath>
#include <string>

namespace levin {
namespace {

// Far above what the router lets through; they bound the work of one row.
constexpr size_t kStopIdsMax = 1024;
constexpr size_t kBiasMax = 4096;
constexpr size_t kBadSequencesMax = 1024;
constexpr size_t kBadSequenceIdsMax = 1024;

Status OutOfRange(std::string_view field, double value, std::string_view expected) {
  return InvalidArgument(std::string(field) + " is " + std::to_string(value) + ", expected " +
                         std::string(expected))
      .WithParam(std::string(field));
}

Status TooMany(std::string_view field, size_t count, size_t max) {
  return InvalidArgument(std::string(field) + " has " + std::to_string(count) +
                         " entries, expected at most " + std::to_string(max))
      .WithParam(std::string(field));
}

Status CheckId(std::string_view field, TokenId id, int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return Status::Ok();
  return InvalidArgument(std::string(field) + " names token " + std::to_string(id) +
                         ", expected an id in [0, " + std::to_string(vocab_size) + ")")
      .WithParam(std::string(field));
}

Status CheckIds(std::string_view field, const std::vector<TokenId>& ids, int32_t vocab_size) {
  for (TokenId id : ids) RETURN_IF_ERROR(CheckId(field, id, vocab_size));
  return Status::Ok();
}

// Written so that NaN is out of every range.
Status CheckScalars(const SamplingParams& p) {
  if (!(p.temperature >= 0 && std::isfinite(p.temperature)))
    return OutOfRange("temperature", p.temperature, "a finite number >= 0");
  if (!(p.top_p > 0 && p.top_p <= 1)) return OutOfRange("top_p", p.top_p, "(0, 1]");
  if (p.top_k < 0) return OutOfRange("top_k", p.top_k, "0 (off) or more");
  if (!(p.min_p >= 0 && p.min_p <= 1)) return OutOfRange("min_p", p.min_p, "[0, 1]");
  if (!(p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty)))
    return OutOfRange("repetition_penalty", p.repetition_penalty, "a finite number > 0");
  if (!std::isfinite(p.frequency_penalty))
    return OutOfRange("frequency_penalty", p.frequency_penalty, "a finite number");
  if (!std::isfinite(p.presence_penalty))
    return OutOfRange("presence_penalty", p.presence_penalty, "a finite number");
  if (p.min_tokens < 0) return OutOfRange("min_tokens", p.min_tokens, "0 or more");
  return Status::Ok();
}

Status CheckBias(const SamplingParams& p, int32_t vocab_size) {
  if (p.logit_bias.size() > kBiasMax) return TooMany("logit_bias", p.logit_bias.size(), kBiasMax);
  for (const auto& [id, bias] : p.logit_bias) {
    RETURN_IF_ERROR(CheckId("logit_bias", id, vocab_size));
    if (!std::isfinite(bias)) return OutOfRange("logit_bias", bias, "a finite number");
  }
  return Status::Ok();
}

Status CheckBadSequences(const SamplingParams& p, int32_t vocab_size) {
  if (p.bad_sequences.size() > kBadSequencesMax)
    return TooMany("bad_sequences", p.bad_sequences.size(), kBadSequencesMax);
  for (const std::vector<TokenId>& ids : p.bad_sequences) {
    if (ids.empty())
      return InvalidArgument("bad_sequences has an empty entry, expected at least one id")
          .WithParam("bad_sequences");
    if (ids.size() > kBadSequenceIdsMax)
      return TooMany("bad_sequences", ids.size(), kBadSequenceIdsMax);
    RETURN_IF_ERROR(CheckIds("bad_sequences", ids, vocab_size));
  }
  return Status::Ok();
}

}  // namespace

Status CheckSampling(const SamplingParams& params, int32_t vocab_size) {
  RETURN_IF_ERROR(CheckScalars(params));
  if (params.logprobs < -1 || params.logprobs > vocab_size)
    return OutOfRange("logprobs", params.logprobs, "-1 (none) up to the vocabulary's size");
  RETURN_IF_ERROR(CheckBias(params, vocab_size));
  if (params.allowed_ids.size() > static_cast<size_t>(vocab_size))
    return TooMany("allowed_ids", params.allowed_ids.size(), static_cast<size_t>(vocab_size));
  RETURN_IF_ERROR(CheckIds("allowed_ids", params.allowed_ids, vocab_size));
  if (params.stop_ids.size() > kStopIdsMax)
    return TooMany("stop_ids", params.stop_ids.size(), kStopIdsMax);
  RETURN_IF_ERROR(CheckIds("stop_ids", params.stop_ids, vocab_size));
  return CheckBadSequences(params, vocab_size);
}

}  // namespace levin
