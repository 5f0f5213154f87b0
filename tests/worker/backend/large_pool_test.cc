// Pools whose last elements lie beyond 2^31 and 2^32: every kernel that computes an offset from a
// block, a slot or a row writes and reads the last page, and nothing where a 32-bit offset would
// have gone. The memory is reserved, not there: only pages that are touched exist.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/worker/backend/kernel_data.h"

namespace levin::testing {
namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31;
constexpr int64_t kTwo32 = int64_t{1} << 32;

// Address space for a tensor of any size; zeros.
class Reserved final {
 public:
  Reserved(DType dtype, const Shape& shape) : bytes_(shape.elements() * ByteSize(dtype)) {
    void* memory = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, bytes_, std::strerror(errno));
    view = {dtype, shape, static_cast<std::byte*>(memory)};
  }
  ~Reserved() { munmap(view.data, static_cast<size_t>(bytes_)); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  // The row that lies at `offset` elements.
  TensorView RowAt(int64_t offset) const {
    return view.Rows(offset / view.shape.row_elements(), 1);
  }

  TensorView view;

 private:
  const int64_t bytes_;
};

bool AllZero(const TensorView& tensor) {
  const auto bytes = tensor.span();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

class LargePoolTest : public ::testing::TestWithParam<CpuPath> {
 protected:
  Kernels& kernels() { return backend_->kernels(); }

  std::unique_ptr<Backend> backend_ = MakeCpuBackend({1, GetParam()});
};

// Three blocks: one below 2^31 elements, one just above, and the last one of the pool, above 2^32.
TEST_P(LargePoolTest, KeysAndValuesOfTheLastBlockAreWrittenAndRead) {
  constexpr int64_t kHeads = 2, kKvHeads = 1, kDim = 16, kTokens = 150;
  constexpr int64_t kStride = 2 * kKvHeads * kKvBlockTokens * kDim;
  constexpr int64_t kBlocks = kTwo32 / kStride + 2;
  constexpr int32_t kLast = kBlocks - 1, kMiddle = kTwo31 / kStride + 1;
  ASSERT_GT(int64_t{kLast} * kStride, kTwo32);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    Random random(1);
    const Owned keys = random.Floats(DType::kF32, {kTokens, kKvHeads, kDim});
    const Owned values = random.Floats(DType::kF32, {kTokens, kKvHeads, kDim});
    const Owned query = random.Floats(DType::kF32, {kTokens, kHeads, kDim});
    const Owned pieces(DType::kI32, {kTokens});
    const auto attend = [&](const TensorView& cache, const std::vector<int32_t>& blocks) {
      TestRows rows;
      rows.Add(0, kTokens, 0, false, blocks);
      Owned out(DType::kF32, {kTokens, kHeads, kDim});
      kernels().StoreKv({keys.view, values.view, rows.table(), cache, 0});
      kernels().PagedAttention(
          {query.view, rows.table(), cache, 0, kKvHeads, pieces.view, out.view});
      return out;
    };
    const Reserved large(type, {kBlocks, 2, kKvHeads, kKvBlockTokens * kDim});
    const Owned small(type, {3, 2, kKvHeads, kKvBlockTokens * kDim});
    const Owned got = attend(large.view, {7, kMiddle, kLast});
    const Owned expected = attend(small.view, {0, 1, 2});
    EXPECT_TRUE(SameBits(got.view, expected.view)) << Name(type);
    EXPECT_TRUE(SameBits(large.view.Rows(kLast, 1), small.view.Rows(2, 1))) << Name(type);
    EXPECT_TRUE(SameBits(large.view.Rows(kMiddle, 1), small.view.Rows(1, 1))) << Name(type);
    EXPECT_TRUE(AllZero(large.RowAt(int64_t{kLast} * kStride - kTwo32))) << "wrapped at 2^32";
    EXPECT_TRUE(AllZero(large.RowAt(int64_t{kMiddle} * kStride - kTwo31))) << "wrapped at 2^31";
  }
}

TEST_P(LargePoolTest, TheStateOfTheLastSlotIsWrittenAndRead) {
  constexpr int64_t kHeads = 2, kDim = 16, kLayers = 2, kTokens = 70;
  constexpr int64_t kStride = kLayers * kHeads * kDim * kDim;
  constexpr int64_t kSlots = kTwo32 / kStride + 2;
  const double slopes[kHeads] = {0.3, 0.001};
  Random random(2);
  const Owned qkv = random.Floats(DType::kF32, {kTokens, kHeads, 3 * kDim});
  const auto run = [&](const TensorView& states, int32_t slot) {
    Owned out(DType::kF32, {kTokens, kHeads, kDim});
    for (const bool stepwise : {false, true}) {  // the second run continues where the first ended
      TestRows rows;
      rows.Add(stepwise ? kTokens : 0, kTokens, slot, stepwise);
      kernels().LightningAttention({qkv.view, rows.table(), states, 1, slopes, out.view});
    }
    return out;
  };
  const Reserved large(DType::kF32, {kSlots, kLayers, kHeads, kDim * kDim});
  const Owned small(DType::kF32, {1, kLayers, kHeads, kDim * kDim});
  const Owned expected = run(small.view, 0);
  ASSERT_FALSE(AllZero(small.view));
  for (const int64_t slot : {kTwo31 / kStride + 1, kSlots - 1}) {
    const Owned got = run(large.view, static_cast<int32_t>(slot));
    EXPECT_TRUE(SameBits(got.view, expected.view)) << slot;
    EXPECT_TRUE(SameBits(large.view.Rows(slot, 1), small.view)) << slot;
  }
  EXPECT_TRUE(AllZero(large.view.Rows(1, 1))) << "wrapped";
}

TEST_P(LargePoolTest, TheLastRowsOfAVocabularyAndOfAStepAreFound) {
  constexpr int64_t kWidth = 4096, kRows = kTwo32 / kWidth + 2;
  Random random(3);
  for (const int64_t row : {kTwo31 / kWidth + 1, kRows - 1}) {
    const Owned known = random.Floats(DType::kBF16, {1, kWidth});
    const Reserved table(DType::kBF16, {kRows, kWidth});
    std::memcpy(table.view.Rows(row, 1).data, known.view.data, known.view.bytes());
    const TokenId token[1] = {static_cast<TokenId>(row)};
    const Owned embedded(DType::kF32, {1, kWidth});
    kernels().Embed({token, table.view, 0, embedded.view});
    for (int64_t i = 0; i < kWidth; ++i) ASSERT_EQ(known.at(i), embedded.at(i)) << row << ' ' << i;

    const int32_t index[1] = {static_cast<int32_t>(row)};
    const Owned gathered(DType::kBF16, {1, kWidth});
    kernels().GatherRows({table.view, index, gathered.view});
    EXPECT_TRUE(SameBits(gathered.view, known.view)) << row;
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
INSTANTIATE_TEST_SUITE_P(Paths, LargePoolTest, ::testing::ValuesIn(AllPaths()), PathName);

}  // namespace
}  // namespace levin::testing
