// A head with more rows than the tokenizer has ids, and the largest logits in the rows beyond it:
// through the whole engine no such id is drawn, on any number of ranks (C22).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/worker/eval/job_group.h"
#include "tests/worker/model/tiny_network.h"
#include "tests/worker/weights/model_folder.h"

namespace levin::testing {
namespace {

constexpr int64_t kDefined = 270, kRows = 320;

template <typename T>
std::vector<T> Read(const std::filesystem::path& path, const std::string& name) {
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  CHECK(file.has_value(), file.error().message());
  const StoredTensor* tensor = file->Find(name);
  CHECK(tensor != nullptr, name);
  std::vector<T> values(static_cast<size_t>(tensor->bytes) / sizeof(T));
  CHECK(file->Read(*tensor, 0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

int64_t Best(const std::vector<float>& logits, int64_t position, int64_t rows) {
  const auto row = logits.begin() + position * kRows;
  return std::max_element(row, row + rows) - row;
}

TEST(PaddedVocabularyTest, ARowThatTheTokenizerLacksIsNeverDrawnEvenWithTheLargestLogit) {
  ModelFolder folder("tiny");
  // A padding row is eight times a real one: twice as large either way round, as its negative is
  // there as well.
  folder.Rewrite([](std::vector<RawTensor>& tensors) {
    RawTensor& head = Named(tensors, "lm_head.weight");
    const size_t row_bytes = head.bytes.size() / kRows;
    for (size_t row = kDefined; row < kRows; ++row) {
      for (size_t i = 0; i < row_bytes; i += 2) {
        uint16_t bits = 0;
        std::memcpy(&bits, head.bytes.data() + (row - kDefined) / 2 * row_bytes + i, 2);
        if ((bits & 0x7f80) != 0) bits += 3 << 7;  // times eight
        if (row % 2 == 1) bits ^= 0x8000;
        std::memcpy(head.bytes.data() + row * row_bytes + i, &bits, 2);
      }
    }
  });
  for (const int ranks : {1, 2, 8}) {
    EvalJob job;
    const std::vector<TokenId> prompt = Prompt(4, 40);
    job.prompts.push_back({"a", prompt});
    job.out = (folder.path() / "out.safetensors").string();
    job.greedy = 24;
    JobSetting setting;
    setting.ranks = ranks;
    setting.defined.assign(kRows, false);
    std::fill_n(setting.defined.begin(), kDefined, true);
    const Status status = RunJob(folder.path(), job, setting);
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<float> logits = Read<float>(job.out, "a.logits");
    const auto last = static_cast<int64_t>(prompt.size()) - 1;
    ASSERT_GE(Best(logits, last, kRows), kDefined) << "no padding row has the largest logit";
    const std::vector<int64_t> drawn = Read<int64_t>(job.out, "a.greedy");
    EXPECT_EQ(drawn[0], Best(logits, last, kDefined)) << "greedy takes the best real id";
    for (const int64_t id : drawn) EXPECT_LT(id, kDefined);
  }
}

}  // namespace
}  // namespace levin::testing
