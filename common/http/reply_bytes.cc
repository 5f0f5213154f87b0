#include "common/http/reply_bytes.h"

#include <utility>

#include "common/http/http_text.h"

namespace levin {

void ReplyBytes::clear() {
  head.clear();
  body.clear();
  tail.clear();
}

void PutWhole(HttpResponse response, ReplyShape shape, ReplyBytes& out) {
  const bool bodiless = response.status == 204 || response.status == 304;
  out.head = FormatHead({.status = response.status,
                         .framing = bodiless ? BodyFraming::kNone : BodyFraming::kLength,
                         .body_bytes = response.body.size(),
                         .keep_alive = shape.keep_alive,
                         .http_1_0 = shape.http_1_0},
                        response.headers);
  if (!shape.head_only && !bodiless) out.body = std::move(response.body);
}

void PutStreamHead(const HttpResponse& response, ReplyShape shape, ReplyBytes& out) {
  out.head = FormatHead({.status = response.status,
                         .framing = shape.http_1_0 ? BodyFraming::kToEnd : BodyFraming::kChunked,
                         .keep_alive = shape.keep_alive,
                         .http_1_0 = shape.http_1_0},
                        response.headers);
}

void PutChunk(std::string bytes, bool last, ReplyShape shape, ReplyBytes& out) {
  if (!bytes.empty()) {
    if (!shape.http_1_0) {
      out.head += ChunkHead(bytes.size());
      out.tail = kChunkTail;
    }
    out.body = std::move(bytes);
  }
  if (last && !shape.http_1_0) out.tail += kLastChunk;
}

}  // namespace levin
