// The HTTP door against arbitrary bytes, through a real socket. The first byte says where the rest
// is cut into two sends. Whatever comes in: the server lives, hands over only well-formed requests,
// and every byte that it sends back belongs to a well-formed reply.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/http/http_server.h"
#include "tests/support/http_client.h"

namespace levin {
namespace {

void Handle(HttpRequest request, std::shared_ptr<HttpResponder> responder) {
  CHECK(!request.path.empty() && !request.method.empty());
  CHECK(request.path.find_first_of("? \r\n") == std::string::npos, request.path);
  CHECK_LE(request.body.size(), 4096u);
  for (const auto& [name, value] : request.headers) {
    CHECK(std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }),
          name);
    CHECK(value.find_first_of("\r\n") == std::string::npos, value);
  }
  const HttpHeaders echo = {{"x-echo", std::string(request.Header("x-echo"))}};
  if (!request.path.starts_with("/s")) return responder->Send({200, echo, request.body});
  responder->StartStream(200, echo);
  responder->Write(request.path);
  responder->Write(request.body);
  request.query == "abort" ? responder->Abort() : responder->Finish();
}

uint16_t Port() {
  static const std::unique_ptr<HttpServer>& server =
      *new std::unique_ptr<HttpServer>(*HttpServer::Start(
          {.host = "0.0.0.0", .header_bytes_max = 2048, .body_bytes_max = 4096}, Handle));
  return server->port();
}

// Each input leaves a pair of addresses in TIME_WAIT, and one destination has only so many.
std::string NextDestination() {
  static int64_t inputs = 0;
  std::string address = "127.0.0.";
  return address += std::to_string(1 + inputs++ % 250);
}

// `text` is a sequence of whole replies; the last may be cut (an abort).
void CheckReplies(std::string_view text, bool may_be_head) {
  while (!text.empty()) {
    CHECK(text.starts_with("HTTP/1.1 "), std::string(text.substr(0, 40)));
    const size_t end = text.find("\r\n\r\n");
    CHECK(end != std::string_view::npos, "a head without an end");
    const std::string_view head = text.substr(0, end + 2);
    text.remove_prefix(end + 4);
    const size_t length = head.find("\r\ncontent-length: ");
    if (length == std::string_view::npos || may_be_head) return;  // ends with the connection
    const size_t bytes = std::stoul(std::string(head.substr(length + 18, 20)));
    CHECK_LE(bytes, text.size());
    text.remove_prefix(bytes);
  }
}

}  // namespace
}  // namespace levin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  levin::testing::HttpClient client(levin::Port(), levin::NextDestination().c_str());
  CHECK(client.connected(), std::strerror(errno));
  const size_t cut = data[0] % input.size();
  if (client.Send(input.substr(0, cut)) && client.Send(input.substr(cut))) client.CloseSending();
  levin::CheckReplies(client.ReadExactly(SIZE_MAX), input.find("HEAD") != std::string_view::npos);
  return 0;
}
