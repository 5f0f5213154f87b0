#include "worker/tensor/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "worker/tensor/bf16.h"

// AddressSanitizer would end the process at a request that the tests make on purpose.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace levin {
namespace {

TEST(Shape, CountsInSixtyFourBits) {
  const Shape shape{200064, 6144, 9216};
  EXPECT_EQ(shape.elements(), int64_t{200064} * 6144 * 9216);
  EXPECT_EQ(shape.row_elements(), 6144 * 9216);
  EXPECT_EQ(ToString(shape), "[200064, 6144, 9216]");
  EXPECT_EQ(Shape().elements(), 0);
  EXPECT_EQ((Shape{3, 0}).elements(), 0);
  EXPECT_NE((Shape{3}), (Shape{3, 1}));
}

// A12: offsets past 2^31 and 2^32, on an address range that nobody touches.
TEST(TensorView, RowsFarBehindTheStartAreReached) {
  const Shape shape{1 << 20, 6144, 1};
  const TensorView pool{DType::kF32, shape, reinterpret_cast<std::byte*>(int64_t{1} << 40)};
  EXPECT_EQ(pool.bytes(), int64_t{6144} * 4 << 20);
  const TensorView last = pool.Rows((1 << 20) - 1, 1);
  EXPECT_EQ(last.data - pool.data, int64_t{(1 << 20) - 1} * 6144 * 4);
  EXPECT_EQ(last.shape, (Shape{1, 6144, 1}));
}

TEST(Buffer, IsZeroedAlignedAndMovedNotCopied) {
  Buffer buffer(DType::kF32, {3, 5});
  EXPECT_EQ(buffer.bytes(), 60);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % Buffer::kAlignment, 0u);
  const TensorView view = buffer.View(DType::kF32, {3, 5});
  for (int i = 0; i < 15; ++i) EXPECT_EQ(view.as<float>()[i], 0.0f);
  view.as<float>()[7] = 2;
  Buffer other = std::move(buffer);
  EXPECT_EQ(other.View(DType::kF32, {5}, 20).as<float>()[2], 2.0f);
  buffer = std::move(other);
  EXPECT_EQ(buffer.bytes(), 60);
  EXPECT_TRUE(Buffer(0).data() != nullptr);
}

TEST(Buffer, MoreMemoryThanThereIsAnError) {
  const Result<Buffer> buffer = Buffer::Allocate(int64_t{1} << 60);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code(), Code::kResourceExhausted);
}

TEST(BufferDeathTest, ViewsOutsideItAreOurMistake) {
  Buffer buffer(64);
  EXPECT_DEATH(buffer.View(DType::kF32, {17}), "CHECK failed");
  EXPECT_DEATH(buffer.View(DType::kF32, {1}, 2), "CHECK failed");
  EXPECT_DEATH(buffer.View(DType::kF32, {4, 4}).Rows(3, 2), "CHECK failed");
}

TEST(Bf16, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    const uint16_t back = FloatToBf16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(back)));
    } else {
      EXPECT_EQ(back, bits);
    }
  }
}

TEST(Bf16, RoundsToTheNearestTiesToEven) {
  const auto rounded = [](uint32_t bits) { return FloatToBf16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);  // tie, stays even
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);  // tie, goes to even
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded(0xbf818000), 0xbf82);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);  // the largest float becomes infinity
  EXPECT_EQ(rounded(0x00008000), 0x0000);  // denormals are rounded like the others
  EXPECT_EQ(rounded(0x00018000), 0x0002);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(rounded(0x7f800001))));
  EXPECT_TRUE(std::isnan(Bf16ToFloat(rounded(0xffffffff))));
}

}  // namespace
}  // namespace levin
