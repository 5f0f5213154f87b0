#include "router/http/sse.h"

namespace levin {

void AppendSseEvent(std::string_view data, std::string& out) {
  out.reserve(out.size() + data.size() + 8);
  size_t begin = 0;
  while (true) {
    // CRLF, CR and LF all end a line of an event stream.
    const size_t end = data.find_first_of("\r\n", begin);
    out += "data: ";
    out += data.substr(begin, end == std::string_view::npos ? end : end - begin);
    out += '\n';
    if (end == std::string_view::npos) break;
    begin = end + (data.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  out += '\n';
}

std::string SseEvent(std::string_view data) {
  std::string event;
  AppendSseEvent(data, event);
  return event;
}

HttpHeaders SseHeaders() {
  return {{"content-type", "text/event-stream; charset=utf-8"},
          {"cache-control", "no-cache"},
          {"x-accel-buffering", "no"}};
}

}  // namespace levin
