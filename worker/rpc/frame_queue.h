// Protobuf frames behind one outstanding write, for the Join stream's two ends. Bounded; not
// synchronised.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

namespace levin {

template <typename Frame>
class FrameQueue final {
 public:
  static constexpr size_t kFramesMax = 1024;

  // False when full: the peer does not read.
  bool Push(Frame frame) {
    if (frames_.size() >= kFramesMax) return false;
    frames_.push_back(std::move(frame));
    return true;
  }
  // The next frame to write, valid until Done; null when one is under way or none waits.
  const Frame* Begin() {
    if (writing_ || frames_.empty()) return nullptr;
    writing_ = true;
    return &frames_.front();
  }
  void Done() {
    writing_ = false;
    frames_.pop_front();
  }
  bool writing() const { return writing_; }
  bool empty() const { return frames_.empty(); }

 private:
  std::deque<Frame> frames_;
  bool writing_ = false;
};

}  // namespace levin
