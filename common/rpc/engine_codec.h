// Frames of the Session (engine.proto) <-> our own types, for both of its ends. Checks what the
// wire could break (negative ids, counts that do not match, NaN); what a group allows (vocabulary,
// length) is the leader's to check. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"
#include "levin/v1/engine.pb.h"

namespace levin {

void ToProto(const SamplingParams& params, v1::Sampling* proto);
Result<SamplingParams> FromProto(const v1::Sampling& proto);

// Everything of Generation; the rest of Submit stays as it is (n is set to 1).
void ToProto(const Generation& generation, v1::Submit* proto);
// kUnimplemented/UNSUPPORTED for what this version does not run: n > 1, prompt_logprobs, prompt
// handles, from_index, resume_ids. A prompt hash that does not fit: kDataLoss/PROMPT_HASH_MISMATCH.
Result<Generation> FromProto(const v1::Submit& proto);

// One run of tokens of one generation, first_index dense and rising.
struct TokenRunView {
  uint64_t ordinal = 0;
  int64_t first_index = 0;
  std::span<const SampledToken> tokens;
};
// Logprobs are written when `with_logprobs`.
void ToProto(const TokenRunView& run, bool with_logprobs, v1::TokenRun* proto);
// Appends `more` to `run`, which it must continue; used while a write is under way.
void AppendRun(v1::TokenRun&& more, v1::TokenRun* run);
Result<std::vector<SampledToken>> TokensFromProto(const v1::TokenRun& proto);

v1::EndReason ToProto(FinishReason reason);
FinishReason FromProto(v1::EndReason reason);  // unknown: kError

void ToProto(const Usage& usage, v1::EngineUsage* proto);
Usage FromProto(const v1::EngineUsage& proto);

// bytes_per_block and bytes_per_slot are not in the frame: they are constants of the Handshake's
// geometry.
void ToProto(const Capacity& capacity, v1::Capacity* proto);
Capacity FromProto(const v1::Capacity& proto, const v1::Geometry& geometry);

// ordinal 0: the Session itself. `blame_group`: the group is at fault, not the request.
void ToProto(const Status& status, uint64_t ordinal, bool blame_group, v1::EngineError* proto);
Status FromProto(const v1::EngineError& proto);  // code 0 or unknown: kUnknown

// "All ordinals up to the watermark but these": of FinishedSet and FreedAck. `live` ascending, each
// >= 1 and <= watermark.
struct OrdinalSet {
  uint64_t watermark = 0;
  std::vector<uint64_t> live;
  bool IsOver(uint64_t ordinal) const;
  bool operator==(const OrdinalSet&) const = default;
};
void ToProto(const OrdinalSet& set, v1::FinishedSet* proto);
void ToProto(const OrdinalSet& set, v1::FreedAck* proto);
Result<OrdinalSet> FromProto(const v1::FinishedSet& proto);
Result<OrdinalSet> FromProto(const v1::FreedAck& proto);

// XXH3-64 over the ids as little-endian u32: Submit.prompt_hash, Finished.ids_hash.
uint64_t HashIds(std::span<const TokenId> ids);

// Equal on both ends for equal sets of live ordinals (ascending): the heartbeat's audit.
uint64_t HashOrdinals(std::span<const uint64_t> ordinals);

}  // namespace levin
