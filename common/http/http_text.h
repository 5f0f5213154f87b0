// The text of HTTP/1.1 replies: heads, chunk framing, the server's own errors. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/http/http_server.h"

namespace levin {

enum class BodyFraming {
  kLength,   // content-length
  kChunked,  // transfer-encoding: chunked
  kToEnd,    // until the connection closes (a stream to an HTTP/1.0 client)
  kNone,     // 204, 304
};

struct ReplyHead {
  int status = 200;
  BodyFraming framing = BodyFraming::kLength;
  size_t body_bytes = 0;   // with kLength
  bool keep_alive = true;  // as it will be after this reply
  bool http_1_0 = false;   // the client's version
};

// Status line and headers with the empty line behind them. Framing and connection headers of the
// handler are left out, control characters in values become spaces: no value can forge a header.
std::string FormatHead(const ReplyHead& head, const HttpHeaders& headers);

// "1a\r\n" for a chunk of 26 bytes.
std::string ChunkHead(size_t bytes);
inline constexpr std::string_view kChunkTail = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// True when the handler's headers say `connection: close`.
bool AsksToClose(const HttpHeaders& headers);

// {"error":{"message","type","param":null,"code"}}; type follows from the status.
HttpResponse ErrorReply(int status, std::string_view code, std::string_view message);

// Path and query of a request target: "/a?b" or "http://host/a?b". Percent-encoding is kept.
std::pair<std::string, std::string> SplitTarget(std::string_view target);

std::string_view ReasonPhrase(int status);

}  // namespace levin
