#include "router/http/request_watch.h"

#include <atomic>
#include <utility>

namespace levin {

struct RequestWatch::Core {
  const Clock& clock;
  const std::function<void(const RequestEnd&)> on_end;
  const std::function<void()> on_idle;
  std::atomic<int> in_flight = 0;
};

// The end of a request is the end of its responder.
class RequestWatch::Responder final : public HttpResponder {
 public:
  Responder(std::shared_ptr<Core> core, const HttpRequest& request,
            std::shared_ptr<HttpResponder> inner)
      : core_(std::move(core)),
        inner_(std::move(inner)),
        begin_(core_->clock.Now()),
        end_{.method = request.method, .path = request.path} {
    ++core_->in_flight;
  }
  ~Responder() override {
    inner_.reset();
    end_.status = status_;
    end_.seconds = std::chrono::duration<double>(core_->clock.Now() - begin_).count();
    if (core_->on_end) core_->on_end(end_);
    if (--core_->in_flight == 0 && core_->on_idle) core_->on_idle();
  }

  void Send(HttpResponse response) override {
    status_ = response.status;
    inner_->Send(std::move(response));
  }
  void StartStream(int status, HttpHeaders headers) override {
    status_ = status;
    inner_->StartStream(status, std::move(headers));
  }
  bool SendInstead(HttpResponse response) override {
    const int status = response.status;
    if (!inner_->SendInstead(std::move(response))) return false;
    status_ = status;
    return true;
  }
  void SetPing(int64_t interval_ms, std::string bytes) override {
    inner_->SetPing(interval_ms, std::move(bytes));
  }
  bool Write(std::string bytes) override { return inner_->Write(std::move(bytes)); }
  size_t buffered_bytes() const override { return inner_->buffered_bytes(); }
  void Finish() override { inner_->Finish(); }
  void Abort() override { inner_->Abort(); }
  void OnGone(std::function<void()> callback) override { inner_->OnGone(std::move(callback)); }

 private:
  const std::shared_ptr<Core> core_;
  std::shared_ptr<HttpResponder> inner_;
  const TimePoint begin_;
  std::atomic<int> status_ = 0;
  RequestEnd end_;
};

RequestWatch::RequestWatch(const Clock& clock, std::function<void(const RequestEnd&)> on_end,
                           std::function<void()> on_idle)
    : core_(new Core{.clock = clock, .on_end = std::move(on_end), .on_idle = std::move(on_idle)}) {}

HttpHandler RequestWatch::Wrap(HttpHandler handler) const {
  return [core = core_, handler = std::move(handler)](HttpRequest request,
                                                      std::shared_ptr<HttpResponder> responder) {
    auto watched = std::make_shared<Responder>(core, request, std::move(responder));
    handler(std::move(request), std::move(watched));
  };
}

int RequestWatch::in_flight() const { return core_->in_flight; }

}  // namespace levin
