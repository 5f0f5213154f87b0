#include <deque>
#include <iterator>
#include <utility>

#include "router/api/error_reply.h"
#include "router/api/http_reply.h"
#include "router/http/sse.h"

namespace levin {
namespace {

// Server-sent events of api.md 4.3. No chunk before the first token exists; until something has
// left (a chunk, or a ping while the prompt is long) an error is an ordinary one.
class StreamedReply final : public HttpReply {
 public:
  StreamedReply(std::unique_ptr<ReplyFormat> format, std::shared_ptr<HttpResponder> responder,
                HttpReplyOptions options, const ReplyShape& shape)
      : HttpReply(std::move(format), std::move(responder), std::move(options)),
        shape_(shape),
        choices_(static_cast<size_t>(options_.choices)) {}

 private:
  struct ChoiceState {
    bool opened = false;
    std::deque<ReplyEvent> pending;  // not written yet: deltas, tool calls, the finish
  };

  void OpenStream() override REQUIRES(mutex_) {
    HttpHeaders headers = options_.headers;
    for (auto& header : SseHeaders()) headers.push_back(std::move(header));
    responder_->StartStream(200, std::move(headers));
    if (options_.ping_interval_ms > 0) {
      responder_->SetPing(options_.ping_interval_ms, std::string(kSsePing));
    }
  }

  void Take(int32_t choice, ReplyEvent event) override REQUIRES(mutex_) {
    ChoiceState& state = choices_[choice];
    if (std::holds_alternative<FirstTokenEvent>(event)) return Open(choice);
    if (const auto* started = std::get_if<StartedEvent>(&event)) {
      running_.cached_tokens += started->cached_tokens;
    } else if (!std::holds_alternative<CompletedEvent>(event)) {
      Open(choice);  // a reply without any token has its finish alone
      if (!MergedIntoLast(state, event)) state.pending.push_back(std::move(event));
    }
  }

  void AfterBatch() override REQUIRES(mutex_) {
    if (responder_->buffered_bytes() > options_.buffered_bytes_max) return;
    Flush();
  }

  void Complete() override REQUIRES(mutex_) {
    Flush();
    if (shape_.include_usage) WriteEvent(format_->UsageChunk(usage_));
    responder_->Write(std::string(kSseDone));
    responder_->Finish();
  }

  void SendError(const Status& status) override REQUIRES(mutex_) {
    if (responder_->SendInstead(ErrorResponse(status, options_.request_id))) return;
    Flush();
    WriteEvent(ErrorBody(status, options_.request_id));
    responder_->Abort();
  }

  void Open(int32_t choice) REQUIRES(mutex_) {
    ChoiceState& state = choices_[choice];
    if (std::exchange(state.opened, true)) return;
    const std::string chunk = format_->OpeningChunk(choice, RunningUsage({}));
    if (!chunk.empty()) WriteEvent(chunk);
  }

  // Text behind text of the same kind that still waits becomes one delta.
  static bool MergedIntoLast(ChoiceState& state, ReplyEvent& event) {
    if (state.pending.empty()) return false;
    auto* last = std::get_if<DeltaEvent>(&state.pending.back());
    auto* next = std::get_if<DeltaEvent>(&event);
    if (last == nullptr || next == nullptr || last->kind != next->kind) return false;
    last->text += next->text;
    std::move(next->tokens.begin(), next->tokens.end(), std::back_inserter(last->tokens));
    return true;
  }

  void Flush() REQUIRES(mutex_) {
    for (int32_t choice = 0; choice < options_.choices; ++choice) {
      ChoiceState& state = choices_[choice];
      while (!state.pending.empty()) WriteChunk(choice, state);
    }
  }

  // One kind for each chunk; the finish goes with the text before it.
  void WriteChunk(int32_t choice, ChoiceState& state) REQUIRES(mutex_) {
    const ReplyEvent event = std::move(state.pending.front());
    state.pending.pop_front();
    ReplyEvent finish;
    ChunkParts parts{.choice = choice};
    std::visit([&](const auto& held) { Put(held, parts); }, event);
    if (parts.delta != nullptr && !state.pending.empty() &&
        std::holds_alternative<ChoiceFinishedEvent>(state.pending.front())) {
      finish = std::move(state.pending.front());
      state.pending.pop_front();
      Put(std::get<ChoiceFinishedEvent>(finish), parts);
    }
    parts.usage = RunningUsage(parts.tokens);
    WriteEvent(format_->Chunk(parts));
  }

  static void Put(const DeltaEvent& event, ChunkParts& parts) {
    parts.delta = &event;
    Append(event.tokens, parts);
  }
  static void Put(const ToolStartEvent& event, ChunkParts& parts) {
    parts.tool_start = &event;
    Append(event.tokens, parts);
  }
  static void Put(const ToolArgsEvent& event, ChunkParts& parts) {
    parts.tool_args = &event;
    Append(event.tokens, parts);
  }
  static void Put(const ChoiceFinishedEvent& event, ChunkParts& parts) {
    parts.finish = &event;
    Append(event.tokens, parts);
  }
  template <typename Other>
  static void Put(const Other&, ChunkParts&) {}  // are never pending

  static void Append(const std::vector<SampledToken>& tokens, ChunkParts& parts) {
    parts.tokens.insert(parts.tokens.end(), tokens.begin(), tokens.end());
  }

  // With the tokens of the chunk that is being written.
  const ReplyUsage* RunningUsage(std::span<const SampledToken> more) REQUIRES(mutex_) {
    running_.prompt_tokens = options_.prompt_tokens;
    running_.completion_tokens += static_cast<int64_t>(more.size());
    return shape_.continuous_usage_stats ? &running_ : nullptr;
  }

  void WriteEvent(std::string_view data) REQUIRES(mutex_) { responder_->Write(SseEvent(data)); }

  const ReplyShape shape_;
  std::vector<ChoiceState> choices_ GUARDED_BY(mutex_);
  ReplyUsage running_ GUARDED_BY(mutex_);  // of what was written
};

}  // namespace

std::shared_ptr<HttpReply> MakeStreamedReply(std::unique_ptr<ReplyFormat> format,
                                             std::shared_ptr<HttpResponder> responder,
                                             HttpReplyOptions options, const ReplyShape& shape) {
  return std::make_shared<StreamedReply>(std::move(format), std::move(responder),
                                         std::move(options), shape);
}

}  // namespace levin
