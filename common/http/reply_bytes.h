// The bytes of a reply, or of the next part of one, as they go to the socket. Pure.
#pragma once

#include <string>

#include "common/http/http_server.h"

namespace levin {

// Three pieces, so that a large body is moved and never copied.
struct ReplyBytes {
  std::string head, body, tail;

  size_t size() const { return head.size() + body.size() + tail.size(); }
  void clear();
};

// What of the request shapes its reply.
struct ReplyShape {
  bool keep_alive = true;
  bool http_1_0 = false;
  bool head_only = false;  // the request's method is HEAD
};

void PutWhole(HttpResponse response, ReplyShape shape, ReplyBytes& out);
void PutStreamHead(const HttpResponse& response, ReplyShape shape, ReplyBytes& out);
// Part of a stream's body behind what `out` holds; `last`: with the terminating chunk. Not for
// HEAD.
void PutChunk(std::string bytes, bool last, ReplyShape shape, ReplyBytes& out);

}  // namespace levin
