#include "router/inference/generator.h"

#include <random>
#include <utility>

#include "router/inference/call_slot.h"
#include "router/inference/generation_meter.h"
#include "router/inference/reply_stream.h"

namespace levin {
namespace {

constexpr int64_t kRetryAfterMs = 1000;

// From the system's entropy: requests without a seed must not repeat each other, whatever router
// they went through.
uint64_t RandomSeed() {
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

}  // namespace

Generator::Generator(const ServedModel& model, EngineClient& engine, const Clock& clock,
                     int64_t request_timeout_ms, const RouterMetrics* metrics)
    : model_(model),
      engine_(engine),
      clock_(clock),
      request_timeout_ms_(request_timeout_ms),
      metrics_(metrics) {}

int64_t Generator::window() const {
  const auto group = engine_.group();
  return WindowOf(model_.info(), group == nullptr ? 0 : group->max_model_len);
}

std::string Generator::fingerprint() const {
  const auto group = engine_.group();
  if (group == nullptr) return {};
  return FingerprintOf(model_.info(), group->ranks, group->model_digest);
}

Status Generator::CheckFits(const InferenceRequest& request, size_t bytes) const {
  Status status = CheckTextFits(request, bytes, model_.tokenizer(), window());
  if (!status.ok()) CountRejection(metrics_, status);
  return status;
}

Status Generator::SetTextPrompt(std::string_view text, InferenceRequest& request) const {
  RETURN_IF_ERROR(CheckFits(request, text.size()));
  request.prompt = model_.EncodeText(text);
  return {};
}

Status Generator::SetChatPrompt(std::string_view request_json, InferenceRequest& request) const {
  ASSIGN_OR_RETURN_STATUS(const std::vector<Segment> segments, model_.RenderChat(request_json));
  size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.text.size();
  RETURN_IF_ERROR(CheckFits(request, bytes));
  ChatPrompt prompt = model_.EncodeRendered(segments);
  request.prompt = std::move(prompt.ids);
  request.reply.think_start = prompt.think_start;
  return {};
}

Result<PreparedRequest> Generator::Prepare(InferenceRequest request) const {
  const auto group = engine_.group();
  if (group == nullptr) {
    Status status = Status(Code::kUnavailable, "NO_GROUP", "no worker group is ready to answer")
                        .WithRetryAfterMs(kRetryAfterMs);
    CountRejection(metrics_, status);
    return Error(std::move(status));
  }
  const RequestLimits limits{.window = WindowOf(model_.info(), group->max_model_len),
                             .max_new_tokens = group->max_new_tokens,
                             .random_seed = RandomSeed(),
                             .now_unix_ms = clock_.UnixMs(),
                             .timeout_ms = request_timeout_ms_};
  auto prepared = PrepareRequest(std::move(request), model_.info(), model_.tokenizer(), limits);
  if (!prepared) CountRejection(metrics_, prepared.error());
  return prepared;
}

Result<std::shared_ptr<Reply>> Generator::Start(PreparedRequest request,
                                                std::unique_ptr<ReplySink> sink) {
  auto slot = std::make_shared<CallSlot>();
  auto stream = std::make_unique<ReplyStream>(request, model_.tokenizer(), clock_, metrics_,
                                              std::move(sink), slot);
  auto call = engine_.Submit(std::move(request.generation), std::move(stream));
  if (!call) {
    CountRejection(metrics_, call.error());
    return Error(std::move(call).error());
  }
  slot->Attach(*std::move(call));
  return slot;
}

}  // namespace levin
