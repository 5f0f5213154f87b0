// One head of lightning attention run alone, and how far a result is from doubles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {

// Largest difference over the largest value; inputs are of order 1, so below 1 it is absolute.
inline double Worst(const float* got, const std::vector<double>& expected) {
  double worst = 0, largest = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

class LightningTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  // Runs one row of one head of layer 1 of 2, in slot 1 of 3.
  void Run(const Owned& qkv, int64_t position, bool stepwise, double slope, const Owned& states,
           const Owned& out, bool fresh) {
    TestRows rows;
    rows.Add(position, qkv.view.shape[0], 1, stepwise);
    rows.fresh[0] = fresh;
    const double slopes[1] = {slope};
    backend_->kernels().LightningAttention(
        {qkv.view, rows.table(), states.view, 1, slopes, out.view});
  }
  static const float* State(const Owned& states) {
    return states.view.as<float>() + (1 * 2 + 1) * states.view.shape[3];
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({1, GetParam()});
};

inline std::string PathName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(Name(info.param));
}

}  // namespace levin::testing
