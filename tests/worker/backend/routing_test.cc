// Routing against known decisions (tests/golden/network/routing.json): ties, extremes, denormals.
#include <gtest/gtest.h>

#include <bit>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/golden.h"
#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

class RoutingTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  // A gate of one column and an input of 1: the logits are the gate's bits.
  void Check(const boost::json::value& row, const char* key, bool round_to_bf16) {
    const auto& bits = row.at("logits_bits").as_array();
    const auto experts = static_cast<int64_t>(bits.size());
    const Owned gate(DType::kF32, {experts, 1});
    for (int64_t e = 0; e < experts; ++e) {
      gate.view.as<uint32_t>()[e] =
          static_cast<uint32_t>(std::stoul(std::string(bits[e].as_string()), nullptr, 16));
    }
    const Owned x(DType::kF32, {1, 1});
    x.view.as<float>()[0] = 1;
    for (const auto& [k_text, expected] : row.at(key).as_object()) {
      if (expected.is_null()) continue;  // rounding overflows
      const int64_t k = std::stoll(std::string(k_text));
      const Owned logits(DType::kF32, {1, experts});
      const Owned chosen(DType::kI32, {1, k});
      const Owned weights(DType::kF32, {1, k});
      backend_->kernels().RouteExperts(
          {x.view, gate.view, round_to_bf16, logits.view, chosen.view, weights.view});
      for (int64_t n = 0; n < k; ++n) {
        EXPECT_EQ(expected.at("experts").as_array()[n].to_number<int32_t>(),
                  chosen.view.as<int32_t>()[n])
            << row.at("name") << ' ' << key << " k " << k;
        EXPECT_NEAR(expected.at("weights").as_array()[n].to_number<double>(), weights.at(n), 1e-6)
            << row.at("name") << ' ' << key << " k " << k;
      }
    }
  }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({1, GetParam()});
};

TEST_P(RoutingTest, ExpertsAndWeightsAreTheKnownOnes) {
  for (const auto& dir : GoldenDirs("network")) {
    std::ifstream in(dir / "routing.json");
    const boost::json::value golden =
        boost::json::parse(std::string{std::istreambuf_iterator<char>(in), {}});
    for (const auto& row : golden.at("rows").as_array()) {
      Check(row, "topk", false);
      Check(row, "topk_bf16", true);
    }
  }
}

std::vector<CpuPath> AllPaths() {
  std::vector<CpuPath> paths = FastPaths();
  paths.push_back(CpuPath::kPlain);
  return paths;
}
std::string PathName(const ::testing::TestParamInfo<CpuPath>& info) {
  return std::string(Name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Paths, RoutingTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
