#include "worker/eval/eval_collector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "worker/weights/safetensors.h"

namespace levin {
namespace {

// Widens ids to the I64 of the file; copies everything else.
void CopyRow(const TensorView& from, int64_t row, const TensorView& to, int64_t element) {
  const int64_t width = from.shape.row_elements();
  if (from.dtype == DType::kI32) {
    const int32_t* source = from.as<int32_t>() + row * width;
    std::copy(source, source + width, to.as<int64_t>() + element);
    return;
  }
  std::memcpy(to.data + element * ByteSize(to.dtype), from.data + row * from.row_bytes(),
              static_cast<size_t>(from.row_bytes()));
}

}  // namespace

EvalCollector::EvalCollector(const EvalJob& job, const ModelConfig& config, Collective& collective,
                             TensorView states)
    : job_(job),
      config_(config),
      collective_(collective),
      states_(states),
      keeps_(collective.rank() == 0),
      seen_(job.prompts.size()) {}

// Sequence ids rise from 1 in the order of admission, which is the order of the file.
Status EvalCollector::BeforeRun(const BatchPlan& plan, const StepBatch&) {
  row_prompt_.clear();
  for (const PlanRow& row : plan.rows) {
    if (row.sequence == 0 || row.sequence > job_.prompts.size())
      return Internal("sequence " + std::to_string(row.sequence) + " is no prompt of the job");
    row_prompt_.push_back(static_cast<size_t>(row.sequence - 1));
  }
  return Status::Ok();
}

Status EvalCollector::AfterRun(const BatchPlan&, const StepBatch& batch) {
  const std::vector<size_t> row_prompt = std::exchange(row_prompt_, {});
  if (!job_.states) return Status::Ok();
  for (size_t row = 0; row < row_prompt.size(); ++row) {
    const int64_t end = batch.row_position[row] + batch.row_first[row + 1] - batch.row_first[row];
    if (end == PromptTokens(row_prompt[row]))
      RETURN_IF_ERROR(GatherStates(row_prompt[row], batch.row_slot[row]));
  }
  return Status::Ok();
}

void EvalCollector::OnTensor(std::string_view what, int layer, const TensorView& value,
                             const StepBatch& batch) {
  if (!job_.trace) return;
  const bool layered = layer >= 0;
  Keep("trace." + std::string(what), layered ? layer : 0, layered ? config_.layers : 0, value,
       batch);
}

void EvalCollector::OnLogits(const TensorView& logits, const StepBatch& batch) {
  Keep("logits", 0, 0, logits, batch);
  for (size_t row = 0; row < row_prompt_.size(); ++row)
    if (batch.row_position[row] < PromptTokens(row_prompt_[row]))
      seen_[row_prompt_[row]] += batch.row_first[row + 1] - batch.row_first[row];
}

void EvalCollector::Keep(std::string_view what, int layer, int64_t layers, const TensorView& value,
                         const StepBatch& batch) {
  if (!keeps_) return;
  const DType dtype = value.dtype == DType::kI32 ? DType::kI64 : value.dtype;
  const int64_t width = value.shape.row_elements();
  for (size_t row = 0; row < row_prompt_.size(); ++row) {
    const size_t prompt = row_prompt_[row];
    const int64_t tokens = PromptTokens(prompt);
    const int64_t first = batch.row_position[row];
    const int64_t count = batch.row_first[row + 1] - batch.row_first[row];
    const int64_t skipped = FirstKept(prompt);
    // Drawn tokens are fed, but not asked about.
    if (first >= tokens || first + count <= skipped) continue;
    const int64_t kept = tokens - skipped;
    const TensorView to = Storage(job_.prompts[prompt].name + "." + std::string(what), dtype,
                                  layers > 0 ? Shape{kept, layers, width} : Shape{kept, width});
    for (int64_t position = std::max(first, skipped); position < first + count; ++position) {
      const int64_t place = (position - skipped) * std::max<int64_t>(layers, 1) + layer;
      CopyRow(value, batch.row_first[row] + position - first, to, place * width);
    }
  }
}

// Ranks hold heads in order, so the gathered slices of one layer are the whole layer.
Status EvalCollector::GatherStates(size_t prompt, int32_t slot) {
  const int64_t d = config_.head_dim;
  int64_t ordinal = 0;
  for (int32_t layer = 0; layer < config_.layers; ++layer) {
    if (config_.layer_kinds[static_cast<size_t>(layer)] != LayerKind::kLightning) continue;
    const TensorView mine = states_.Rows(slot, 1);
    const auto bytes = static_cast<size_t>(mine.bytes() / states_.shape[1]);
    const std::span<std::byte> part =
        mine.span().subspan(bytes * static_cast<size_t>(ordinal++), bytes);
    Buffer whole(DType::kF32, {config_.heads, d, d});
    RETURN_IF_ERROR(
        collective_.AllGather(part, {whole.data(), static_cast<size_t>(whole.bytes())}));
    if (!keeps_) continue;
    const std::string name = job_.prompts[prompt].name + ".state." + std::to_string(layer);
    const TensorView to = Storage(name, DType::kF32, {config_.heads, d, d});
    std::memcpy(to.data, whole.data(), static_cast<size_t>(whole.bytes()));
  }
  return Status::Ok();
}

Status EvalCollector::Write(std::span<const std::vector<TokenId>> greedy) {
  CHECK(keeps_);
  CHECK_EQ(greedy.size(), job_.prompts.size());
  for (size_t prompt = 0; prompt < job_.prompts.size(); ++prompt) {
    const std::string& name = job_.prompts[prompt].name;
    if (seen_[prompt] < PromptTokens(prompt))
      return Internal("prompt '" + name + "': " + std::to_string(seen_[prompt]) + " of " +
                      std::to_string(PromptTokens(prompt)) + " positions have logits");
    if (job_.greedy == 0) continue;
    const TensorView to = Storage(name + ".greedy", DType::kI64, {job_.greedy});
    CHECK_EQ(static_cast<int64_t>(greedy[prompt].size()), to.elements());
    std::copy(greedy[prompt].begin(), greedy[prompt].end(), to.as<int64_t>());
  }
  std::vector<NamedTensor> tensors;
  for (const auto& [name, stored] : stored_) tensors.push_back({name, stored.tensor});
  return WriteSafetensors(job_.out, tensors);
}

int64_t EvalCollector::PromptTokens(size_t prompt) const {
  return static_cast<int64_t>(job_.prompts[prompt].ids.size());
}

int64_t EvalCollector::FirstKept(size_t prompt) const {
  return job_.last > 0 ? std::max<int64_t>(PromptTokens(prompt) - job_.last, 0) : 0;
}

TensorView EvalCollector::Storage(const std::string& name, DType dtype, const Shape& shape) {
  const auto [it, added] = stored_.try_emplace(name);
  if (added) {
    it->second.memory = Buffer(dtype, shape);
    it->second.tensor = it->second.memory.View(dtype, shape);
  }
  CHECK(it->second.tensor.shape == shape && it->second.tensor.dtype == dtype, name);
  return it->second.tensor;
}

}  // namespace levin
