#include "router/api/http_reply.h"

#include <utility>

#include "router/api/error_reply.h"

namespace levin {

class HttpReply::ChoiceSink final : public ReplySink {
 public:
  ChoiceSink(std::shared_ptr<HttpReply> reply, int32_t choice)
      : reply_(std::move(reply)), choice_(choice) {}
  void OnEvents(std::vector<ReplyEvent> events) override {
    reply_->OnEvents(choice_, std::move(events));
  }

 private:
  const std::shared_ptr<HttpReply> reply_;
  const int32_t choice_;
};

HttpReply::HttpReply(std::unique_ptr<ReplyFormat> format, std::shared_ptr<HttpResponder> responder,
                     HttpReplyOptions options)
    : format_(std::move(format)), responder_(std::move(responder)), options_(std::move(options)) {}

std::unique_ptr<ReplySink> HttpReply::SinkOf(int32_t choice) {
  return std::make_unique<ChoiceSink>(shared_from_this(), choice);
}

void HttpReply::Attach(std::shared_ptr<Reply> generation) {
  {
    MutexLock lock(mutex_);
    if (!over_) {
      generations_.push_back(std::move(generation));
      return;
    }
  }
  generation->Cancel(CancelReason::kClientGone);
}

void HttpReply::Begin() {
  {
    MutexLock lock(mutex_);
    OpenStream();
  }
  responder_->OnGone([weak = weak_from_this()] {
    if (auto reply = weak.lock()) reply->ClientGone();
  });
}

void HttpReply::OnEvents(int32_t choice, std::vector<ReplyEvent> events) {
  std::vector<std::shared_ptr<Reply>> to_cancel;
  {
    MutexLock lock(mutex_);
    for (ReplyEvent& event : events) {
      if (over_) return;
      if (const auto* failed = std::get_if<FailedEvent>(&event)) {
        SendError(failed->status);
        to_cancel = EndLocked();
        break;
      }
      if (const auto* completed = std::get_if<CompletedEvent>(&event)) {
        AddUsage(completed->usage);
        ++completed_;
      }
      Take(choice, std::move(event));
    }
    if (!over_) AfterBatch();
    if (!over_ && completed_ == options_.choices) {
      Complete();
      EndLocked();
    }
  }
  for (const auto& generation : to_cancel) generation->Cancel(CancelReason::kAbort);
}

// Several choices: prompts and completions are summed.
void HttpReply::AddUsage(const ReplyUsage& usage) {
  usage_.prompt_tokens += usage.prompt_tokens;
  usage_.cached_tokens += usage.cached_tokens;
  usage_.completion_tokens += usage.completion_tokens;
  usage_.reasoning_tokens += usage.reasoning_tokens;
}

void HttpReply::Fail(const Status& status) {
  std::vector<std::shared_ptr<Reply>> to_cancel;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    SendError(status);
    to_cancel = EndLocked();
  }
  for (const auto& generation : to_cancel) generation->Cancel(CancelReason::kAbort);
}

void HttpReply::ClientGone() {
  std::vector<std::shared_ptr<Reply>> to_cancel;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    to_cancel = EndLocked();
  }
  for (const auto& generation : to_cancel) generation->Cancel(CancelReason::kClientGone);
}

std::vector<std::shared_ptr<Reply>> HttpReply::EndLocked() {
  over_ = true;
  return std::exchange(generations_, {});
}

// ---- whole

namespace {

class WholeReply final : public HttpReply {
 public:
  WholeReply(std::unique_ptr<ReplyFormat> format, std::shared_ptr<HttpResponder> responder,
             HttpReplyOptions options)
      : HttpReply(std::move(format), std::move(responder), std::move(options)),
        choices_(static_cast<size_t>(options_.choices)) {}

 private:
  void Take(int32_t choice, ReplyEvent event) override REQUIRES(mutex_) {
    choices_[choice].Add(std::move(event));
  }

  void Complete() override REQUIRES(mutex_) {
    HttpResponse response;
    response.headers = options_.headers;
    response.headers.emplace_back("content-type", "application/json");
    response.body = format_->Whole(choices_, usage_);
    responder_->Send(std::move(response));
  }

  void SendError(const Status& status) override REQUIRES(mutex_) {
    responder_->Send(ErrorResponse(status, options_.request_id));
  }

  std::vector<ChoiceResult> choices_ GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<HttpReply> MakeWholeReply(std::unique_ptr<ReplyFormat> format,
                                          std::shared_ptr<HttpResponder> responder,
                                          HttpReplyOptions options) {
  return std::make_shared<WholeReply>(std::move(format), std::move(responder), std::move(options));
}

}  // namespace levin
