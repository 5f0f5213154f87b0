// Holds back what repeats too often. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace levin {

class RepeatLimit final {
 public:
  static constexpr int64_t kPerWindowMax = 20;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr size_t kEventsMax = 1024;  // names are fixed in the code; above, none is limited

  // nullopt: hold this one back. Else the number that was held back before it.
  std::optional<int64_t> Admit(std::string_view event, TimePoint now) {
    auto found = events_.find(event);
    if (found == events_.end()) {
      if (events_.size() >= kEventsMax) return 0;
      found = events_.emplace(event, Window{now}).first;
    }
    Window& window = found->second;
    if (now - window.begin >= kWindow) {
      const int64_t held_back = std::max<int64_t>(0, window.count - kPerWindowMax);
      window = {now, 1};
      return held_back;
    }
    if (++window.count > kPerWindowMax) return std::nullopt;
    return 0;
  }

 private:
  struct Window {
    TimePoint begin;
    int64_t count = 0;
  };
  std::map<std::string, Window, std::less<>> events_;
};

}  // namespace levin
