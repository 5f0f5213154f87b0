#include "router/text/reply_writer.h"

#include <utility>

namespace levin {

void ReplyWriter::Content(std::string_view text) {
  if (text.empty()) return;
  Append(ReplyPart::Kind::kContent, aside_);
  aside_.clear();
  Append(ReplyPart::Kind::kContent, text);
  any_content_ = true;
}

void ReplyWriter::Reasoning(std::string_view text) {
  if (options_.include_reasoning) Append(ReplyPart::Kind::kReasoning, text);
}

void ReplyWriter::Aside(std::string_view space) {
  if (any_content_) aside_ += space;
}

void ReplyWriter::StartCall(std::string_view name) {
  dropping_ = calls_ > 0 && !options_.parallel_tool_calls;
  if (dropping_) return;
  parts_.push_back({ReplyPart::Kind::kToolStart, "", calls_++, NewId(), std::string(name)});
}

void ReplyWriter::Args(std::string_view fragment) {
  if (!dropping_) Append(ReplyPart::Kind::kToolArgs, fragment);
}

std::vector<ReplyPart> ReplyWriter::Take() { return std::exchange(parts_, {}); }

std::string ReplyWriter::NewId() {
  constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) {  // splitmix64
    uint64_t z = id_state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    id += kAlphabet[(z ^ z >> 31) % kAlphabet.size()];
  }
  return id;
}

void ReplyWriter::Append(ReplyPart::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const int32_t index = kind == ReplyPart::Kind::kToolArgs ? calls_ - 1 : 0;
  if (parts_.empty() || parts_.back().kind != kind || parts_.back().index != index) {
    parts_.push_back({kind, "", index, "", ""});
  }
  parts_.back().text += text;
}

}  // namespace levin
