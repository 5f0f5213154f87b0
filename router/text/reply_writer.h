// What the parsers found in a reply, as it goes out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

struct ReplyPart {
  enum class Kind : uint8_t { kContent, kReasoning, kToolStart, kToolArgs };

  Kind kind = Kind::kContent;
  std::string text;      // content, reasoning, or a fragment of the arguments' JSON text
  int32_t index = 0;     // of the call, dense from 0
  std::string id, name;  // kToolStart
};

// Collects parts; neighbours of one kind are joined. Keeps the whitespace around calls aside.
class ReplyWriter final {
 public:
  struct Options {
    bool include_reasoning = true;
    bool parallel_tool_calls = true;  // false: calls behind the first are dropped
    uint64_t id_seed = 0;             // of the random ids of calls
  };
  explicit ReplyWriter(const Options& options) : options_(options), id_state_(options.id_seed) {}

  void Content(std::string_view text);
  void Reasoning(std::string_view text);
  // Whitespace before a call: comes back before the next content if some was there before it.
  void Aside(std::string_view space);
  void StartCall(std::string_view name);
  void Args(std::string_view fragment);  // of the call started last

  std::vector<ReplyPart> Take();

  int32_t calls() const { return calls_; }
  bool any_content() const { return any_content_; }

 private:
  std::string NewId();
  void Append(ReplyPart::Kind kind, std::string_view text);

  const Options options_;
  uint64_t id_state_;
  std::vector<ReplyPart> parts_;
  std::string aside_;
  int32_t calls_ = 0;      // begun
  bool dropping_ = false;  // the current call is not shown
  bool any_content_ = false;
};

}  // namespace levin
