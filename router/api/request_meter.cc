#include "router/api/request_meter.h"

#include "common/metrics/router_metrics.h"

namespace levin {
namespace {

Api ApiOf(std::string_view path) {
  if (path == "/v1/chat/completions") return Api::kChat;
  if (path == "/v1/completions") return Api::kCompletions;
  if (path == "/tokenize" || path == "/v1/tokenize") return Api::kTokenize;
  if (path == "/detokenize" || path == "/v1/detokenize") return Api::kDetokenize;
  return Api::kOther;
}

}  // namespace

RequestMeter::RequestMeter(const RouterMetrics* metrics, const Clock& clock, std::string_view path)
    : metrics_(metrics),
      clock_(clock),
      accepted_(clock.Now()),
      api_(static_cast<int>(ApiOf(path))) {}

RequestMeter::~RequestMeter() { End(499, How::kLeft); }

void RequestMeter::StreamOpened() {
  if (metrics_ != nullptr && !streaming_.exchange(true)) {
    metrics_->open_streams(Transport::kSse).Add(1);
  }
}

void RequestMeter::Answered(int status) {
  End(status, status < 400 ? How::kOk : status == 499 ? How::kLeft : How::kError);
}

void RequestMeter::Broken() { End(500, How::kError); }

void RequestMeter::End(int status, How how) {
  if (metrics_ == nullptr || ended_.exchange(true)) return;
  const Api api = static_cast<Api>(api_);
  const Outcome outcome = how == How::kOk     ? Outcome::kOk
                          : how == How::kLeft ? Outcome::kCancelled
                                              : Outcome::kError;
  metrics_->requests(api, RequestClass::kDefault, ToHttpCode(status)).Add();
  metrics_->request_duration(api, outcome)
      .Observe(std::chrono::duration<double>(clock_.Now() - accepted_).count());
  if (streaming_) metrics_->open_streams(Transport::kSse).Add(-1);
}

}  // namespace levin
