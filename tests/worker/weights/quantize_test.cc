#include "worker/weights/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <random>
#include <string>

#include "tests/worker/weights/model_folder.h"
#include "worker/tensor/bf16.h"

namespace levin {
namespace {

namespace json = boost::json;

std::vector<uint16_t> Bits(const json::value& hex) {
  std::vector<uint16_t> bits;
  for (const json::value& word : hex.as_array()) {
    bits.push_back(static_cast<uint16_t>(std::stoul(word.as_string().c_str(), nullptr, 16)));
  }
  return bits;
}

uint32_t FloatBits(const json::value& hex) {
  return static_cast<uint32_t>(std::stoul(hex.as_string().c_str(), nullptr, 16));
}

std::vector<int8_t> Quantized(std::span<const uint16_t> row, float scale) {
  std::vector<int8_t> q(row.size());
  QuantizeInt8(row, scale, q);
  return q;
}

json::value Golden() {
  return json::parse(testing::ReadBytes(testing::GoldenDirs("network").front() / "int8.json"));
}

TEST(Quantize, GoldenRowsAreMetBitForBit) {
  const json::value golden = Golden();
  int rows = 0;
  for (const json::value& row : golden.at("rows").as_array()) {
    ++rows;
    const std::vector<uint16_t> values = Bits(row.at("row_bf16"));
    const float scale = RowScaleInt8(values);
    EXPECT_EQ(std::bit_cast<uint32_t>(scale), FloatBits(row.at("scale_bits"))) << row.at("name");
    EXPECT_EQ(Quantized(values, scale), json::value_to<std::vector<int8_t>>(row.at("q")))
        << row.at("name");
  }
  EXPECT_EQ(rows, 27);
}

TEST(Quantize, HoweverColumnsAreCutTheScaleIsThatOfTheWholeRow) {
  const json::value golden = Golden();
  const json::value& split = golden.at("w2_split");
  for (size_t r = 0; r < split.at("rows_bf16").as_array().size(); ++r) {
    const std::vector<uint16_t> row = Bits(split.at("rows_bf16").at(r));
    const auto expected = json::value_to<std::vector<int8_t>>(split.at("q").at(r));
    const float scale = RowScaleInt8(row);
    EXPECT_EQ(std::bit_cast<uint32_t>(scale), FloatBits(split.at("scale_bits").at(r)));
    for (size_t parts : {1u, 2u, 4u, 8u}) {
      std::vector<int8_t> all;
      for (size_t p = 0; p < parts; ++p) {
        const size_t width = row.size() / parts;
        const auto part = Quantized(std::span(row).subspan(p * width, width), scale);
        all.insert(all.end(), part.begin(), part.end());
      }
      EXPECT_EQ(all, expected) << parts << " parts";
    }
  }
}

TEST(Quantize, ErrorsStayWithinHalfAStep) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 50; ++round) {
    std::vector<uint16_t> row(257);
    for (uint16_t& bits : row) bits = FloatToBf16(normal(random) * std::exp(normal(random) * 5));
    const float scale = RowScaleInt8(row);
    const std::vector<int8_t> q = Quantized(row, scale);
    int largest = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_GE(q[i], -127);
      EXPECT_LE(std::abs(Bf16ToFloat(row[i]) - double{scale} * q[i]), scale * 0.5000001);
      largest = std::max(largest, std::abs(int{q[i]}));
    }
    EXPECT_EQ(largest, 127);
  }
}

TEST(Quantize, AScaleTellsOfInfinitiesAndNans) {
  EXPECT_TRUE(std::isinf(RowScaleInt8(std::vector<uint16_t>{0x3f80, 0xff80})));
  EXPECT_TRUE(std::isnan(RowScaleInt8(std::vector<uint16_t>{0x7f80, 0xffc0, 0x3f80})));
}

}  // namespace
}  // namespace levin
