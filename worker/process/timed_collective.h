// A collective that adds up the time spent in it, for the metric of waiting. Engine thread; Abort
// from any.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "worker/comm/collective.h"

namespace levin {

class TimedCollective final : public Collective {
 public:
  explicit TimedCollective(std::unique_ptr<Collective> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  Status AllReduceSum(std::span<float> values) override {
    const Stopwatch stopwatch(spent_);
    return inner_->AllReduceSum(values);
  }
  Status AllGather(std::span<const std::byte> in, std::span<std::byte> out) override {
    const Stopwatch stopwatch(spent_);
    return inner_->AllGather(in, out);
  }
  void Abort(std::string_view reason) override { inner_->Abort(reason); }

  // Since the last call.
  std::chrono::nanoseconds TakeSpent() { return std::exchange(spent_, {}); }

 private:
  class Stopwatch {
   public:
    explicit Stopwatch(std::chrono::nanoseconds& sum) : sum_(sum) {}
    ~Stopwatch() { sum_ += std::chrono::steady_clock::now() - begin_; }

   private:
    std::chrono::nanoseconds& sum_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  const std::unique_ptr<Collective> inner_;
  std::chrono::nanoseconds spent_{};
};

}  // namespace levin
