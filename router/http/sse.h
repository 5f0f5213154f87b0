// Server-sent events as OpenAI's clients read them: one `data:` line per event, no `event:` lines.
// Pure text; knows nothing of inference. A stream is `data: {json}\n\n` …, last `data: [DONE]\n\n`.
#pragma once

#include <string>
#include <string_view>

#include "common/http/http_server.h"

namespace levin {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// A comment: every client skips it, proxies see traffic.
inline constexpr std::string_view kSsePing = ": ping\n\n";

// "data: " + `data` + "\n\n". `data` is one line (serialised JSON never holds a line break); a line
// break in it becomes another `data:` line, as the standard joins them again.
std::string SseEvent(std::string_view data);

// Appends the same to `out`: for several events in one Write.
void AppendSseEvent(std::string_view data, std::string& out);

// content-type, and what keeps caches and proxies from holding events back.
HttpHeaders SseHeaders();

}  // namespace levin
