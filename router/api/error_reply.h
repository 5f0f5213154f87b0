// Every error of the HTTP API in one shape and from one table (api.md 9).
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/http/http_server.h"

namespace levin {

// {"error":{"message","type","param","code"}}: the body of an error reply, and the event that ends
// a stream.
std::string ErrorBody(const Status& status, std::string_view request_id);

int HttpStatusOf(const Status& status);

// With Retry-After, WWW-Authenticate or x-should-retry where the error has them.
HttpResponse ErrorResponse(const Status& status, std::string_view request_id);

// Errors that only HTTP knows.
Status UnknownUrl();
Status MethodNotAllowed(std::string_view method, std::string_view allowed);
Status UnsupportedMediaType(std::string_view got);
Status InvalidApiKey(bool given);

}  // namespace levin
