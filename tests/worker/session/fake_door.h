#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "worker/session/session.h"

namespace levin {

// A stream whose writes end when the test says so.
class FakeDoor final : public SessionDoor {
 public:
  void StartWrite(const OutFrame& frame) override {
    EXPECT_FALSE(writing) << "two writes at once";
    EXPECT_FALSE(end) << "a write behind the end";
    writing = true;
    frames.push_back(frame);
  }
  void Finish(const Status& status) override {
    EXPECT_FALSE(writing) << "an end beside a write";
    EXPECT_FALSE(end) << "two ends";
    end = status;
  }
  void Cancel() override { cancelled = true; }

  // Ends writes until none is under way.
  void Flush(Session& session) {
    while (writing) {
      writing = false;
      session.OnWriteDone(true);
    }
  }
  template <typename T>
  std::vector<T> Of() const {
    std::vector<T> found;
    for (const OutFrame& frame : frames) {
      if (const T* what = std::get_if<T>(&frame)) found.push_back(*what);
    }
    return found;
  }

  std::vector<OutFrame> frames;
  std::optional<Status> end;
  bool writing = false;
  bool cancelled = false;
};

}  // namespace levin
