// One request on its way through the API: what came, and where the answer goes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/http/http_server.h"
#include "router/api/request_meter.h"

namespace levin {

// Adds to every reply what all replies have: the request's id, and leave for browsers. Any thread.
class ApiResponder final : public HttpResponder {
 public:
  ApiResponder(std::shared_ptr<HttpResponder> inner, std::string request_id,
               std::unique_ptr<RequestMeter> meter)
      : inner_(std::move(inner)), request_id_(std::move(request_id)), meter_(std::move(meter)) {}

  // Before the reply begins.
  void set_request_id(std::string request_id) { request_id_ = std::move(request_id); }
  const std::string& request_id() const { return request_id_; }
  void SendError(const Status& status);
  void SendJson(std::string body);

  void Send(HttpResponse response) override;
  bool SendInstead(HttpResponse response) override;
  void StartStream(int status, HttpHeaders headers) override;
  void SetPing(int64_t interval_ms, std::string bytes) override {
    inner_->SetPing(interval_ms, std::move(bytes));
  }
  bool Write(std::string bytes) override { return inner_->Write(std::move(bytes)); }
  size_t buffered_bytes() const override { return inner_->buffered_bytes(); }
  void Finish() override;
  void Abort() override;
  void OnGone(std::function<void()> callback) override { inner_->OnGone(std::move(callback)); }

 private:
  void AddHeaders(HttpHeaders& headers) const;

  const std::shared_ptr<HttpResponder> inner_;
  std::string request_id_;
  const std::unique_ptr<RequestMeter> meter_;
};

struct ApiCall {
  HttpRequest request;
  std::shared_ptr<ApiResponder> responder;
  bool id_from_header = false;
  int64_t ping_interval_ms = 0;  // 0: silent streams stay silent
};

// An id as clients may send one, cut to 128 characters; kInvalidArgument unless all of it is
// visible ASCII.
Result<std::string> CheckRequestId(std::string_view id, const std::string& param);

// The id of the body counts where no header gave one.
Status AdoptBodyId(ApiCall& call, const std::string& body_id);

// Of x-levin-timeout-ms; 0: none.
Result<int64_t> TimeoutOf(const HttpRequest& request);

}  // namespace levin
