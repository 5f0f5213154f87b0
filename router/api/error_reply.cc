#include "router/api/error_reply.h"

#include <algorithm>
#include <string_view>

#include "router/api/json_writer.h"

namespace levin {
namespace {

struct ErrorRow {
  std::string_view reason;  // Status::reason
  int http;
  std::string_view type;
  std::string_view code;
};

constexpr std::string_view kInvalid = "invalid_request_error";

constexpr ErrorRow kByReason[] = {
    {"INVALID_JSON", 400, kInvalid, "invalid_json"},
    {"MISSING_REQUIRED_PARAMETER", 400, kInvalid, "missing_required_parameter"},
    {"INVALID_TYPE", 400, kInvalid, "invalid_type"},
    {"INVALID_FIELD", 400, kInvalid, "invalid_value"},
    {"INVALID_SCHEMA", 400, kInvalid, "invalid_schema"},
    {"UNSUPPORTED_PARAMETER", 400, kInvalid, "unsupported_parameter"},
    {"CONTEXT_LENGTH_EXCEEDED", 400, kInvalid, "context_length_exceeded"},
    {"CACHE_NEVER_FITS", 400, kInvalid, "context_length_exceeded"},
    {"TEMPLATE_ERROR", 400, kInvalid, "template_error"},
    {"INVALID_API_KEY", 401, kInvalid, "invalid_api_key"},
    {"PERMISSION_DENIED", 403, kInvalid, "permission_denied"},
    {"MODEL_NOT_FOUND", 404, kInvalid, "model_not_found"},
    {"UNKNOWN_URL", 404, kInvalid, "unknown_url"},
    {"METHOD_NOT_ALLOWED", 405, kInvalid, "method_not_allowed"},
    {"GENERATION_EXISTS", 409, kInvalid, "generation_exists"},
    {"REQUEST_TOO_LARGE", 413, kInvalid, "request_too_large"},
    {"UNSUPPORTED_MEDIA_TYPE", 415, kInvalid, "unsupported_media_type"},
    {"QUEUE_FULL", 429, "rate_limit_error", "rate_limit_exceeded"},
    {"RATE_LIMITED", 429, "rate_limit_error", "rate_limit_exceeded"},
    {"CANCELLED", 499, kInvalid, "request_cancelled"},
    {"UNSUPPORTED", 501, "server_error", "not_implemented"},
    {"MODEL_LOADING", 503, "server_error", "service_unavailable"},
    {"DRAINING", 503, "server_error", "service_unavailable"},
    {"NO_GROUP", 503, "server_error", "service_unavailable"},
    {"QUEUE_TIMEOUT", 503, "server_error", "service_unavailable"},
    {"EPOCH_ENDED", 503, "server_error", "service_unavailable"},
    {"DEADLINE_EXCEEDED", 504, "timeout_error", "deadline_exceeded"},
};

constexpr ErrorRow kInternalRow = {"INTERNAL", 500, "server_error", "internal_error"};

// Where the reason says nothing more precise.
constexpr struct {
  Code code;
  std::string_view reason;
} kByCode[] = {
    {Code::kCancelled, "CANCELLED"},
    {Code::kInvalidArgument, "INVALID_FIELD"},
    {Code::kOutOfRange, "INVALID_FIELD"},
    {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
    {Code::kNotFound, "UNKNOWN_URL"},
    {Code::kPermissionDenied, "PERMISSION_DENIED"},
    {Code::kUnauthenticated, "INVALID_API_KEY"},
    {Code::kResourceExhausted, "QUEUE_FULL"},
    {Code::kUnavailable, "NO_GROUP"},
    {Code::kUnimplemented, "UNSUPPORTED"},
};

const ErrorRow* FindReason(std::string_view reason) {
  for (const ErrorRow& row : kByReason) {
    if (row.reason == reason) return &row;
  }
  return nullptr;
}

const ErrorRow& RowOf(const Status& status) {
  if (const ErrorRow* row = FindReason(status.reason())) return *row;
  for (const auto& [code, reason] : kByCode) {
    if (code == status.code()) return *FindReason(reason);
  }
  return kInternalRow;
}

// What went wrong inside may hold paths and addresses: the client gets a name to ask for instead.
std::string MessageOf(const Status& status, const ErrorRow& row, std::string_view request_id) {
  if (row.http != 500) return status.message();
  const std::string what =
      status.reason() == "NUMERIC_FAULT"      ? "the model produced a value that is no number"
      : status.reason() == "ENGINE_RESTARTED" ? "the engine stopped while it was answering"
                                              : "internal error";
  return what + " (request " + std::string(request_id) + ")";
}

// Clients ignore or give up on more than a minute.
constexpr int64_t kRetryAfterMsMax = 60'000;
constexpr int64_t kRetryAfterMsDefault = 1000;

void AddRetryHeaders(const Status& status, int http, HttpHeaders& headers) {
  if (http != 429 && http != 503) return;
  const int64_t given = status.retry_after_ms();
  const int64_t ms = std::min(given > 0 ? given : kRetryAfterMsDefault, kRetryAfterMsMax);
  headers.emplace_back("retry-after", std::to_string((ms + 999) / 1000));
  headers.emplace_back("retry-after-ms", std::to_string(ms));
}

}  // namespace

int HttpStatusOf(const Status& status) { return RowOf(status).http; }

std::string ErrorBody(const Status& status, std::string_view request_id) {
  const ErrorRow& row = RowOf(status);
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Field("message", MessageOf(status, row, request_id)).Field("type", row.type);
  if (status.param().empty()) {
    json.NullField("param");
  } else {
    json.Field("param", status.param());
  }
  json.Field("code", row.code).EndObject().EndObject();
  return json.Take();
}

HttpResponse ErrorResponse(const Status& status, std::string_view request_id) {
  HttpResponse response;
  response.status = HttpStatusOf(status);
  response.headers.emplace_back("content-type", "application/json");
  AddRetryHeaders(status, response.status, response.headers);
  if (response.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  // The same request would fail the same way: no reason to run it twice more.
  if (status.reason() == "NUMERIC_FAULT") {
    response.headers.emplace_back("x-should-retry", "false");
  }
  response.body = ErrorBody(status, request_id);
  return response;
}

Status UnknownUrl() { return {Code::kNotFound, "UNKNOWN_URL", "there is nothing at this path"}; }

Status MethodNotAllowed(std::string_view method, std::string_view allowed) {
  return {Code::kUnimplemented, "METHOD_NOT_ALLOWED",
          "method " + std::string(method.substr(0, 16)) +
              " is not allowed here; allowed: " + std::string(allowed)};
}

Status UnsupportedMediaType(std::string_view got) {
  return {Code::kInvalidArgument, "UNSUPPORTED_MEDIA_TYPE",
          "send the body with content-type: application/json" +
              std::string(got.empty() ? ", none was given"
                                      : ", got " + std::string(got.substr(0, 64)))};
}

Status InvalidApiKey(bool given) {
  return {Code::kUnauthenticated, "INVALID_API_KEY",
          given ? "the API key is not valid"
                : "an API key is needed: send the header Authorization: Bearer KEY"};
}

}  // namespace levin
