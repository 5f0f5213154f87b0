#include "worker/plan/plan_codec.h"

#include <utility>
#include <vector>

#include "worker/plan/byte_stream.h"

namespace levin {
namespace {

constexpr uint32_t kMagic = 0x4e4c504c;  // "LPLN"
constexpr size_t kRangeBytes = 8;
constexpr size_t kSamplingBytesMin = 7 * 4 + 8 + 4 * 4 + 2 * 4;  // lists empty
constexpr size_t kNewSequenceBytesMin = 8 + 4 + 2 * kRangeBytes + kSamplingBytesMin;
constexpr size_t kRowBytes = 8 + 8 + kRangeBytes + 1 + 1 + 4;

template <std::integral T>
void PutNumbers(ByteWriter& out, const std::vector<T>& numbers) {
  out.PutCount(numbers.size());
  for (T number : numbers) out.Put(number);
}

template <std::integral T>
std::vector<T> GetNumbers(ByteReader& in) {
  std::vector<T> numbers(in.GetCount(sizeof(T)));
  for (T& number : numbers) number = in.Get<T>();
  return numbers;
}

void PutRange(ByteWriter& out, Range range) {
  out.Put(range.first);
  out.Put(range.count);
}

Range GetRange(ByteReader& in, size_t size) {
  Range range;
  range.first = in.Get<int32_t>();
  range.count = in.Get<int32_t>();
  if (range.first < 0 || range.count < 0 ||
      int64_t{range.first} + range.count > static_cast<int64_t>(size)) {
    in.Fail("a range of " + std::to_string(range.count) + " from " + std::to_string(range.first) +
            " leaves its array of " + std::to_string(size));
    return {};
  }
  return range;
}

void PutSampling(ByteWriter& out, const SamplingParams& p) {
  out.PutFloat(p.temperature);
  out.PutFloat(p.top_p);
  out.Put(p.top_k);
  out.PutFloat(p.min_p);
  out.PutFloat(p.repetition_penalty);
  out.PutFloat(p.frequency_penalty);
  out.PutFloat(p.presence_penalty);
  out.Put(p.seed);
  out.PutCount(p.logit_bias.size());
  for (const auto& [id, bias] : p.logit_bias) {
    out.Put(id);
    out.PutFloat(bias);
  }
  PutNumbers(out, p.allowed_ids);
  out.PutCount(p.bad_sequences.size());
  for (const std::vector<TokenId>& ids : p.bad_sequences) PutNumbers(out, ids);
  PutNumbers(out, p.stop_ids);
  out.Put(p.min_tokens);
  out.Put(p.logprobs);
}

SamplingParams GetSampling(ByteReader& in) {
  SamplingParams p;
  p.temperature = in.GetFloat();
  p.top_p = in.GetFloat();
  p.top_k = in.Get<int32_t>();
  p.min_p = in.GetFloat();
  p.repetition_penalty = in.GetFloat();
  p.frequency_penalty = in.GetFloat();
  p.presence_penalty = in.GetFloat();
  p.seed = in.Get<uint64_t>();
  p.logit_bias.resize(in.GetCount(8));
  for (auto& [id, bias] : p.logit_bias) {
    id = in.Get<TokenId>();
    bias = in.GetFloat();
  }
  p.allowed_ids = GetNumbers<TokenId>(in);
  p.bad_sequences.resize(in.GetCount(4));
  for (std::vector<TokenId>& ids : p.bad_sequences) ids = GetNumbers<TokenId>(in);
  p.stop_ids = GetNumbers<TokenId>(in);
  p.min_tokens = in.Get<int32_t>();
  p.logprobs = in.Get<int32_t>();
  return p;
}

void PutNewSequence(ByteWriter& out, const NewSequence& started) {
  out.Put(started.sequence);
  out.Put(started.state_slot);
  PutRange(out, started.blocks);
  PutSampling(out, started.sampling);
  PutRange(out, started.counted);
}

NewSequence GetNewSequence(ByteReader& in, const BatchPlan& plan) {
  NewSequence started;
  started.sequence = in.Get<SequenceId>();
  started.state_slot = in.Get<int32_t>();
  started.blocks = GetRange(in, plan.blocks.size());
  started.sampling = GetSampling(in);
  started.counted = GetRange(in, plan.tokens.size());
  return started;
}

void PutRow(ByteWriter& out, const PlanRow& row) {
  out.Put(row.sequence);
  out.Put(row.position);
  PutRange(out, row.tokens);
  out.PutBool(row.fresh);
  out.PutBool(row.stepwise);
  out.Put(row.draws);
}

PlanRow GetRow(ByteReader& in, const BatchPlan& plan) {
  PlanRow row;
  row.sequence = in.Get<SequenceId>();
  row.position = in.Get<int64_t>();
  row.tokens = GetRange(in, plan.tokens.size());
  row.fresh = in.GetBool();
  row.stepwise = in.GetBool();
  row.draws = in.Get<int32_t>();
  return row;
}

}  // namespace

std::string EncodePlan(const BatchPlan& plan) {
  ByteWriter out;
  out.Put(kMagic);
  out.Put(kPlanVersion);
  out.Put(plan.epoch);
  out.Put(plan.step);
  PutNumbers(out, plan.tokens);
  PutNumbers(out, plan.blocks);
  PutNumbers(out, plan.finished);
  out.PutCount(plan.started.size());
  for (const NewSequence& started : plan.started) PutNewSequence(out, started);
  out.PutCount(plan.rows.size());
  for (const PlanRow& row : plan.rows) PutRow(out, row);
  return out.Take();
}

Result<BatchPlan> DecodePlan(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Get<uint32_t>() != kMagic) return Error(InvalidArgument("bytes are no plan: wrong magic"));
  const uint16_t version = in.Get<uint16_t>();
  if (version != kPlanVersion)
    return Error(FailedPrecondition("plan has version " + std::to_string(version) + ", expected " +
                                    std::to_string(kPlanVersion)));
  BatchPlan plan;
  plan.epoch = in.Get<uint64_t>();
  plan.step = in.Get<uint64_t>();
  plan.tokens = GetNumbers<TokenId>(in);
  plan.blocks = GetNumbers<int32_t>(in);
  plan.finished = GetNumbers<SequenceId>(in);
  plan.started.resize(in.GetCount(kNewSequenceBytesMin));
  for (NewSequence& started : plan.started) started = GetNewSequence(in, plan);
  plan.rows.resize(in.GetCount(kRowBytes));
  for (PlanRow& row : plan.rows) row = GetRow(in, plan);
  if (!in.failed() && !in.at_end()) in.Fail("bytes follow the plan");
  if (in.failed()) return Error(InvalidArgument("bytes are no plan: " + in.error()));
  return plan;
}

}  // namespace levin
