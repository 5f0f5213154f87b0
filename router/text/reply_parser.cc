#include "router/text/reply_parser.h"

#include <unistd.h>

#include "common/base/check.h"

namespace levin {
namespace {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  CHECK(::getentropy(&seed, sizeof seed) == 0);
  return seed;
}

std::unique_ptr<ToolParser> MakeTools(ToolFamily family, ReplyWriter& out) {
  switch (family) {
    case ToolFamily::kNone:
      return nullptr;
    case ToolFamily::kM1:
      return MakeM1ToolParser(out);
    case ToolFamily::kText01:
      return MakeText01ToolParser(out);
  }
  return nullptr;
}

}  // namespace

ReplyParser::ReplyParser(const ReplyParserOptions& options)
    : options_(options),
      writer_({options.include_reasoning, options.parallel_tool_calls,
               options.id_seed ? *options.id_seed : RandomSeed()}),
      tools_(MakeTools(options.tools, writer_)) {
  // M1 thinks aloud about its calls, so its block is followed even where it stays in the content.
  if (options.reasoning || options.tools == ToolFamily::kM1) {
    think_.emplace(options.reasoning, options.start, writer_, tools_.get());
  }
}

ReplyParser::~ReplyParser() = default;

std::vector<ReplyPart> ReplyParser::Push(std::string_view text,
                                         std::span<const SpecialEvent> specials) {
  size_t done = 0;
  for (const SpecialEvent& event : specials) {
    if (!tools_ || event.id != options_.function_call) continue;
    Feed(text.substr(done, event.at - done));
    done = event.at;
    if (think_) think_->OnSpecial();
    if (!think_ || !think_->inside()) tools_->OnFunctionCall();
  }
  Feed(text.substr(done));
  return writer_.Take();
}

void ReplyParser::Feed(std::string_view text) {
  if (text.empty()) return;
  if (think_) return think_->Push(text);
  tools_ ? tools_->Push(text) : writer_.Content(text);
}

std::vector<ReplyPart> ReplyParser::Flush(FinishReason reason) {
  ended_ = reason;
  const bool cut = reason != FinishReason::kStop;
  if (think_) {
    cut_in_reasoning_ = options_.reasoning && cut && think_->inside();
    think_->Flush(cut);
  }
  if (tools_) tools_->Flush();
  return writer_.Take();
}

bool ReplyParser::content_is_null() const {
  return cut_in_reasoning_ || (writer_.calls() > 0 && !writer_.any_content());
}

size_t ReplyParser::reasoning_bytes() const {
  return think_ && options_.reasoning ? think_->reasoning_bytes() : 0;
}

}  // namespace levin
