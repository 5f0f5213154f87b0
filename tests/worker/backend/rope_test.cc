// Rotary angles and rotation against known bits (tests/golden/network/rope.json).
#include "worker/backend/rope.h"

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

std::vector<boost::json::value> RopeGoldens() {
  std::vector<boost::json::value> goldens;
  for (const auto& dir : GoldenDirs("network")) {
    std::ifstream in(dir / "rope.json");
    goldens.push_back(boost::json::parse(std::string{std::istreambuf_iterator<char>(in), {}}));
  }
  return goldens;
}

uint32_t Bits(const boost::json::value& hex) {
  return static_cast<uint32_t>(std::stoul(std::string(hex.as_string()), nullptr, 16));
}

TEST(RopeTest, InverseFrequenciesHaveTheKnownBits) {
  for (const auto& golden : RopeGoldens()) {
    for (const auto& table : golden.at("inv_freq_tables").as_array()) {
      const auto got = RopeInverseFrequencies(table.at("theta").to_number<double>(),
                                              table.at("rotary_dim").to_number<int64_t>());
      const auto& bits = table.at("inv_freq_bits").as_array();
      ASSERT_EQ(bits.size(), got.size());
      for (size_t j = 0; j < got.size(); ++j) {
        EXPECT_EQ(Bits(bits[j]), std::bit_cast<uint32_t>(got[j])) << table.at("theta") << ' ' << j;
      }
    }
  }
}

TEST(RopeTest, AnglesSinesAndCosinesAreTheKnownOnesUpToTenMillion) {
  const auto backend = MakeCpuBackend({1, BestCpuPath()});
  for (const auto& golden : RopeGoldens()) {
    const auto rotary = golden.at("rotary_dim").to_number<int64_t>();
    const auto inv_freq = RopeInverseFrequencies(golden.at("theta").to_number<double>(), rotary);
    for (const auto& row : golden.at("rows").as_array()) {
      const int64_t position[1] = {row.at("position").to_number<int64_t>()};
      // Two heads: one starts as (1, 0) in each pair, the other as (0, 1); dims beyond stay.
      const int64_t dim = rotary + 8;
      const Owned x(DType::kF32, {1, 2, dim});
      for (int64_t j = 0; j < rotary / 2; ++j) x.view.as<float>()[j] = 1;
      for (int64_t j = 0; j < rotary / 2; ++j) x.view.as<float>()[dim + rotary / 2 + j] = 1;
      for (int64_t j = rotary; j < dim; ++j) x.view.as<float>()[j] = 5;
      backend->kernels().Rope({x.view, inv_freq, position});
      for (int64_t j = 0; j < rotary / 2; ++j) {
        EXPECT_EQ(Bits(row.at("angle_bits").as_array()[j]),
                  std::bit_cast<uint32_t>(RopeAngle(position[0], inv_freq[j])));
        const double cosine = row.at("cos").as_array()[j].to_number<double>();
        const double sine = row.at("sin").as_array()[j].to_number<double>();
        EXPECT_NEAR(cosine, x.at(j), 2.5e-7);
        EXPECT_NEAR(sine, x.at(rotary / 2 + j), 2.5e-7);
        EXPECT_NEAR(-sine, x.at(dim + j), 2.5e-7);
        EXPECT_NEAR(cosine, x.at(dim + rotary / 2 + j), 2.5e-7);
      }
      for (int64_t j = rotary; j < dim; ++j) EXPECT_EQ(5, x.at(j));
    }
  }
}

}  // namespace
}  // namespace levin::testing
