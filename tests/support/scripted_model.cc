#include "tests/support/scripted_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/check.h"
#include "worker/sample/token_history.h"

namespace levin::testing {
namespace {

constexpr TokenId kPoison = -1;

uint64_t Mix(uint64_t x) {  // splitmix64's finish
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// A state depends on the order of the tokens, a key on its place: both halves must be right.
uint64_t NextState(uint64_t state, TokenId token) {
  return Mix(state * 3 + static_cast<uint64_t>(token) + 1);
}
uint64_t Key(int64_t position, TokenId token) {
  return Mix((static_cast<uint64_t>(position) << 20) + static_cast<uint64_t>(token) + 1);
}

void FillLogits(uint64_t state, uint64_t keys, std::span<float> out) {
  for (size_t id = 0; id < out.size(); ++id)
    out[id] = static_cast<float>(Mix(state + keys * 7 + id) >> 44) * 0x1p-17f;  // [0, 8)
}

}  // namespace

ScriptedModel::ScriptedModel(int64_t slots, int64_t blocks, int32_t block_tokens,
                             int32_t vocab_size)
    : block_tokens_(block_tokens),
      vocab_size_(vocab_size),
      slots_(static_cast<size_t>(slots)),
      keys_(static_cast<size_t>(blocks * block_tokens), kPoison) {}

Status ScriptedModel::Run(const StepBatch& batch, std::span<float> logits) {
  if (before_run) RETURN_IF_ERROR(before_run(batch));
  const auto vocab = static_cast<size_t>(vocab_size_);
  CHECK_EQ(logits.size(), batch.logit_tokens.size() * vocab);
  size_t wanted = 0;
  for (int32_t row = 0; row < batch.row_count(); ++row) {
    RunRow(batch, row);
    const int32_t last = batch.row_first[static_cast<size_t>(row) + 1] - 1;
    if (wanted < batch.logit_tokens.size() && batch.logit_tokens[wanted] == last)
      Logits(batch, row, logits.subspan(vocab * wanted++, vocab));
  }
  CHECK_EQ(wanted, batch.logit_tokens.size());
  return Status::Ok();
}

void ScriptedModel::RunRow(const StepBatch& batch, int32_t row) {
  const auto r = static_cast<size_t>(row);
  ++rows_run_;
  Slot& slot = slots_[static_cast<size_t>(batch.row_slot[r])];
  if (batch.row_fresh[r]) slot = {.state = 0, .poisoned = false};
  int64_t position = batch.row_position[r];
  for (int32_t t = batch.row_first[r]; t < batch.row_first[r + 1]; ++t, ++position) {
    const TokenId token = batch.tokens[static_cast<size_t>(t)];
    slot.state = NextState(slot.state, token);
    const int32_t block =
        batch.block_ids[static_cast<size_t>(batch.block_first[r] + position / block_tokens_)];
    keys_[static_cast<size_t>(block) * static_cast<size_t>(block_tokens_) +
          static_cast<size_t>(position % block_tokens_)] = token;
  }
}

void ScriptedModel::Logits(const StepBatch& batch, int32_t row, std::span<float> out) const {
  const auto r = static_cast<size_t>(row);
  const Slot& slot = slots_[static_cast<size_t>(batch.row_slot[r])];
  const int64_t length = batch.row_position[r] + batch.row_first[r + 1] - batch.row_first[r];
  bool poisoned = slot.poisoned;
  uint64_t keys = 0;
  for (int64_t position = 0; position < length; ++position) {
    const int32_t block =
        batch.block_ids[static_cast<size_t>(batch.block_first[r] + position / block_tokens_)];
    const TokenId token = keys_[static_cast<size_t>(block) * static_cast<size_t>(block_tokens_) +
                                static_cast<size_t>(position % block_tokens_)];
    poisoned |= token == kPoison;
    keys += Key(position, token);
  }
  if (poisoned)
    std::fill(out.begin(), out.end(), NAN);
  else
    FillLogits(slot.state, keys, out);
}

void ScriptedModel::PoisonSlot(int32_t slot) {
  slots_[static_cast<size_t>(slot)] = {.state = 0xdead, .poisoned = true};
}

void ScriptedModel::PoisonBlock(int32_t block) {
  const auto first = keys_.begin() + int64_t{block} * block_tokens_;
  std::fill(first, first + block_tokens_, kPoison);
}

ScriptedOutput RunAlone(const Generation& generation, Sampler& sampler, int32_t vocab_size) {
  ScriptedOutput output;
  uint64_t state = 0, keys = 0;
  int64_t position = 0;
  const auto feed = [&](TokenId token) {
    state = NextState(state, token);
    keys += Key(position++, token);
  };
  for (TokenId token : generation.prompt) feed(token);
  TokenHistory history;
  const std::set<TokenId> distinct(generation.prompt.begin(), generation.prompt.end());
  if (generation.sampling.repetition_penalty != 1.0f)
    history.prompt.assign(distinct.begin(), distinct.end());
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  const std::vector<TokenId>& stops = generation.sampling.stop_ids;
  output.reason = FinishReason::kLength;
  for (int32_t index = 0; index < generation.max_new_tokens; ++index) {
    FillLogits(state, keys, logits);
    const Draw draw = sampler.Sample(logits, generation.sampling, history, index);
    CHECK(!draw.numeric_fault);
    output.tokens.push_back(draw.token.token);
    history.Add(draw.token.token);
    if (std::find(stops.begin(), stops.end(), draw.token.token) != stops.end()) {
      output.reason = FinishReason::kStop;
      break;
    }
    feed(draw.token.token);
  }
  return output;
}

}  // namespace levin::testing
