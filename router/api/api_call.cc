#include "router/api/api_call.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "router/api/error_reply.h"

namespace levin {
namespace {

constexpr size_t kRequestIdMax = 128;
constexpr int64_t kTimeoutMsMax = int64_t{30} * 24 * 3600 * 1000;

}  // namespace

void ApiResponder::AddHeaders(HttpHeaders& headers) const {
  headers.emplace_back("x-request-id", request_id_);
  headers.emplace_back("access-control-allow-origin", "*");
}

void ApiResponder::Send(HttpResponse response) {
  AddHeaders(response.headers);
  meter_->Answered(response.status);
  inner_->Send(std::move(response));
}

bool ApiResponder::SendInstead(HttpResponse response) {
  const int status = response.status;
  AddHeaders(response.headers);
  if (!inner_->SendInstead(std::move(response))) return false;
  meter_->Answered(status);
  return true;
}

void ApiResponder::StartStream(int status, HttpHeaders headers) {
  AddHeaders(headers);
  meter_->StreamOpened();
  inner_->StartStream(status, std::move(headers));
}

void ApiResponder::Finish() {
  meter_->Answered(200);
  inner_->Finish();
}

void ApiResponder::Abort() {
  meter_->Broken();
  inner_->Abort();
}

void ApiResponder::SendError(const Status& status) { Send(ErrorResponse(status, request_id_)); }

void ApiResponder::SendJson(std::string body) {
  Send({.status = 200, .headers = {{"content-type", "application/json"}}, .body = std::move(body)});
}

Result<std::string> CheckRequestId(std::string_view id, const std::string& param) {
  const bool visible = std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 127; });
  if (!visible) {
    return Error(
        InvalidArgument(param + " may hold visible ASCII characters only").WithParam(param));
  }
  return std::string(id.substr(0, kRequestIdMax));
}

Status AdoptBodyId(ApiCall& call, const std::string& body_id) {
  if (body_id.empty() || call.id_from_header) return {};
  ASSIGN_OR_RETURN_STATUS(std::string id, CheckRequestId(body_id, "request_id"));
  call.responder->set_request_id(std::move(id));
  return {};
}

Result<int64_t> TimeoutOf(const HttpRequest& request) {
  const std::string_view text = request.Header("x-levin-timeout-ms");
  if (text.empty()) return 0;
  int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms < 1 || ms > kTimeoutMsMax) {
    return Error(InvalidArgument("x-levin-timeout-ms must be a whole number from 1 to " +
                                 std::to_string(kTimeoutMsMax))
                     .WithParam("x-levin-timeout-ms"));
  }
  return ms;
}

}  // namespace levin
