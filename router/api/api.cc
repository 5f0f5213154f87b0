#include "router/api/api.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "common/http/request_id.h"
#include "router/api/admin_handler.h"
#include "router/api/chat_handler.h"
#include "router/api/completion_handler.h"
#include "router/api/error_reply.h"
#include "router/api/tokenize_handler.h"

namespace levin {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr int64_t kRetryAfterMs = 1000;

bool IsJson(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; \t"));
  return std::equal(type.begin(), type.end(), kJson.begin(), kJson.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// Browsers ask before they send; the answer needs no key.
void AnswerPreflight(const ApiCall& call) {
  call.responder->Send({.status = 204,
                        .headers = {{"access-control-allow-methods", "GET, HEAD, POST, OPTIONS"},
                                    {"access-control-allow-headers", "*, authorization"},
                                    {"access-control-max-age", "600"}},
                        .body = {}});
}

}  // namespace

struct HttpApi::Route {
  std::string_view path;
  std::string_view methods;  // as in the header Allow
  bool open = false;         // needs no key
  bool work = false;         // is refused while draining
  void (*run)(HttpApi& api, ApiCall call) = nullptr;

  bool Allows(std::string_view method) const {
    for (size_t at = methods.find(method); at != std::string_view::npos;
         at = methods.find(method, at + 1)) {
      const size_t end = at + method.size();
      const bool whole =
          (at == 0 || methods[at - 1] == ' ') && (end == methods.size() || methods[end] == ',');
      if (whole) return true;
    }
    return false;
  }
};

const std::vector<HttpApi::Route>& HttpApi::Routes() {
  static constexpr std::string_view kGet = "GET, HEAD";
  static const auto tokenize = [](HttpApi& api, ApiCall call) {
    HandleTokenize(std::move(call), api.generator_);
  };
  static const auto detokenize = [](HttpApi& api, ApiCall call) {
    HandleDetokenize(std::move(call), api.generator_);
  };
  static const auto ready = [](HttpApi& api, ApiCall call) {
    HandleReady(std::move(call), api.ready());
  };
  static const auto alive = [](HttpApi&, ApiCall call) { HandleAlive(std::move(call)); };
  static const std::vector<Route> routes = {
      {"/v1/chat/completions", "POST", false, true,
       [](HttpApi& api, ApiCall call) { HandleChat(std::move(call), api.generator_, api.clock_); }},
      {"/v1/completions", "POST", false, true,
       [](HttpApi& api, ApiCall call) {
         HandleCompletion(std::move(call), api.generator_, api.clock_);
       }},
      {"/v1/models", kGet, false, false,
       [](HttpApi& api, ApiCall call) { HandleModels(std::move(call), api.generator_); }},
      {kModelPrefix, kGet, false, false,
       [](HttpApi& api, ApiCall call) {
         const std::string id = call.request.path.substr(kModelPrefix.size());
         HandleModel(std::move(call), api.generator_, id);
       }},
      {"/tokenize", "POST", false, false, tokenize},
      {"/v1/tokenize", "POST", false, false, tokenize},
      {"/detokenize", "POST", false, false, detokenize},
      {"/v1/detokenize", "POST", false, false, detokenize},
      {"/tokenizer_info", kGet, false, false,
       [](HttpApi& api, ApiCall call) { HandleTokenizerInfo(std::move(call), api.generator_); }},
      {"/health", kGet, true, false, ready},
      {"/readyz", kGet, true, false, ready},
      {"/livez", kGet, true, false, alive},
      {"/ping", "GET, HEAD, POST", true, false, ready},
      {"/version", kGet, true, false,
       [](HttpApi&, ApiCall call) { HandleVersion(std::move(call)); }},
      {"/metrics", kGet, false, false,
       [](HttpApi& api, ApiCall call) {
         HandleMetrics(std::move(call), api.metrics_text_ ? api.metrics_text_() : "");
       }},
  };
  return routes;
}

HttpApi::HttpApi(Generator& generator, const EngineClient& engine, const Clock& clock,
                 ApiOptions options)
    : generator_(generator),
      engine_(engine),
      clock_(clock),
      keys_(options.api_keys),
      metrics_text_(std::move(options.metrics_text)),
      metrics_(options.metrics),
      ping_interval_ms_(options.sse_ping_interval_ms) {}

HttpHandler HttpApi::handler() {
  return [this](HttpRequest request, std::shared_ptr<HttpResponder> responder) {
    Handle(std::move(request), std::move(responder));
  };
}

Status HttpApi::ready() const {
  if (draining_) {
    return Status(Code::kUnavailable, "DRAINING", "the server is shutting down")
        .WithRetryAfterMs(kRetryAfterMs);
  }
  if (engine_.group() == nullptr) {
    return Status(Code::kUnavailable, "NO_GROUP", "no worker group is ready to answer")
        .WithRetryAfterMs(kRetryAfterMs);
  }
  return {};
}

void HttpApi::Handle(HttpRequest request, std::shared_ptr<HttpResponder> responder) {
  std::string& path = request.path;
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  auto meter = std::make_unique<RequestMeter>(metrics_, clock_, path);

  ApiCall call;
  call.request = std::move(request);
  call.ping_interval_ms = ping_interval_ms_;
  const std::string_view sent = call.request.Header("x-request-id");
  Result<std::string> id = CheckRequestId(sent, "x-request-id");
  call.id_from_header = id && !id->empty();
  call.responder = std::make_shared<ApiResponder>(
      std::move(responder), call.id_from_header ? *id : NewRequestId(), std::move(meter));
  if (!id) return call.responder->SendError(id.error());
  if (call.request.method == "OPTIONS") return AnswerPreflight(call);
  Answer(std::move(call));
}

void HttpApi::Answer(ApiCall call) {
  const std::string_view path = call.request.path;
  const auto& routes = Routes();
  const auto route = std::find_if(routes.begin(), routes.end(), [&](const Route& one) {
    return one.path == path || (one.path == kModelPrefix && path.starts_with(kModelPrefix));
  });
  if (route == routes.end()) return call.responder->SendError(UnknownUrl());
  if (!route->Allows(call.request.method)) {
    HttpResponse response = ErrorResponse(MethodNotAllowed(call.request.method, route->methods),
                                          call.responder->request_id());
    response.headers.emplace_back("allow", route->methods);
    return call.responder->Send(std::move(response));
  }
  if (Status status = Admit(*route, call.request); !status.ok()) {
    return call.responder->SendError(status);
  }
  route->run(*this, std::move(call));
}

Status HttpApi::Admit(const Route& route, const HttpRequest& request) const {
  const std::string_view authorization = request.Header("authorization");
  if (!route.open && !keys_.Allows(authorization)) return InvalidApiKey(!authorization.empty());
  if (route.work) RETURN_IF_ERROR(ready());
  const bool has_body = request.method == "POST" && !route.open;
  const std::string_view type = request.Header("content-type");
  if (has_body && !IsJson(type)) return UnsupportedMediaType(type);
  return {};
}

}  // namespace levin
