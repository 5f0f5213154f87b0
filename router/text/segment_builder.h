// A rendered prompt while it is written.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "router/text/tokenizer.h"

namespace levin {

class SegmentBuilder final {
 public:
  SegmentBuilder& Scaffold(std::string_view text) { return Add(text, true); }
  SegmentBuilder& Content(std::string_view text) { return Add(text, false); }
  std::vector<Segment> Take() && { return std::move(segments_); }

 private:
  SegmentBuilder& Add(std::string_view text, bool scaffold) {
    if (text.empty()) return *this;
    if (segments_.empty() || segments_.back().scaffold != scaffold)
      segments_.push_back({"", scaffold});
    segments_.back().text += text;
    return *this;
  }

  std::vector<Segment> segments_;
};

}  // namespace levin
