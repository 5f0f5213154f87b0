// What `levin eval --compare` makes of two files: here made by hand, in eval_test.py by real runs.
#include "cli/eval_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/worker/weights/model_folder.h"

namespace levin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RawTensor;

template <typename T>
RawTensor Tensor(const std::string& name, const char* dtype, std::vector<int64_t> shape,
                 std::vector<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, dtype, std::move(shape), bytes};
}

class EvalCompareTest : public ::testing::Test {
 protected:
  SafetensorsFile File(const std::string& name, const std::vector<RawTensor>& tensors) {
    testing::WriteBytes(folder_.path() / name, testing::RawFile(tensors));
    auto file = SafetensorsFile::Open(folder_.path() / name);
    CHECK(file.has_value(), file.error().message());
    return *std::move(file);
  }
  Result<EvalComparison> Compare(const std::vector<RawTensor>& run,
                                 const std::vector<RawTensor>& known, double tolerance = 1e-4) {
    const std::vector<std::string> prompts = {"a"};
    return CompareEval(File("run", run), File("known", known), prompts, tolerance);
  }

  testing::TempFolder folder_;
};

TEST_F(EvalCompareTest, AReferenceOfFewerRowsHoldsTheLastOnes) {
  const RawTensor run = Tensor<float>("a.logits", "F32", {3, 2}, {9, 9, 1, 2, 3, -4});
  const RawTensor known = Tensor<float>("a.logits", "F32", {2, 2}, {1, 2, 3, -4.5});
  const EvalComparison comparison = *Compare({run}, {known});
  ASSERT_EQ(comparison.values.size(), 1u);
  EXPECT_DOUBLE_EQ(comparison.values[0].absolute, 0.5);
  EXPECT_DOUBLE_EQ(comparison.values[0].relative, 0.5 / 4.5);
  EXPECT_EQ(comparison.values[0].first_row, 1);
  EXPECT_FALSE(Within(comparison.values[0], 0.1));
  EXPECT_TRUE(Within(comparison.values[0], 0.2));
}

TEST_F(EvalCompareTest, ANanIsOutsideOfEveryTolerance) {
  const RawTensor run = Tensor<float>("a.state.2", "F32", {1, 1, 2}, {1, NAN});
  const RawTensor known = Tensor<float>("a.state.2", "F32", {1, 1, 2}, {1, 1});
  for (const auto& [ours, theirs] : {std::pair(run, known), std::pair(known, run)}) {
    const EvalComparison comparison = *Compare({ours}, {theirs}, 1e30);
    EXPECT_FALSE(Within(comparison.values[0], 1e30));
    EXPECT_EQ(comparison.values[0].first_row, 0);
    EXPECT_EQ(comparison.values[0].layer, 2);
  }
}

// Two positions, two layers: the second layer's experts differ at the second position.
TEST_F(EvalCompareTest, NamesTheFirstLayerThatDiffersInTheOrderOfTheNetwork) {
  const std::vector<RawTensor> known = {
      Tensor<int64_t>("a.ids", "I64", {2}, {5, 6}),
      Tensor<float>("a.logits", "F32", {2, 1}, {1, 1}),
      Tensor<int64_t>("a.trace.experts", "I64", {2, 2, 1}, {0, 1, 2, 3}),
      Tensor<float>("a.trace.after_mlp", "F32", {2, 2, 1}, {1, 2, 3, 4}),
      Tensor<float>("a.trace.input_norm", "F32", {2, 2, 1}, {1, 2, 3, 4})};
  std::vector<RawTensor> run = known;
  run[1] = Tensor<float>("a.logits", "F32", {2, 1}, {1, 7});
  run[2] = Tensor<int64_t>("a.trace.experts", "I64", {2, 2, 1}, {0, 1, 2, 1});
  run[3] = Tensor<float>("a.trace.after_mlp", "F32", {2, 2, 1}, {1, 2, 3, 5});
  const EvalComparison comparison = *Compare(run, known);
  std::vector<std::string> order;
  for (const ValueDifference& value : comparison.values)
    order.push_back(value.what + "." + std::to_string(value.layer));
  EXPECT_THAT(order,
              ElementsAre("experts.0", "after_mlp.0", "experts.1", "after_mlp.1", "logits.-1"));
  EXPECT_THAT(comparison.unmatched, ElementsAre("a.trace.input_norm"));
  const std::string text = ComparisonText(comparison, 1e-4);
  EXPECT_THAT(text, HasSubstr("a layer 1: experts 1 differ, after_mlp 1 (0.25)\n"));
  EXPECT_THAT(text, HasSubstr("a end: logits 6 (6)\n"));
  EXPECT_THAT(text, HasSubstr("first outside 0.0001: prompt 'a', layer 1, experts, row 1\n"));
  EXPECT_THAT(ComparisonText(*Compare(known, known, 0), 0), HasSubstr("all within 0\n"));
}

TEST_F(EvalCompareTest, FilesThatDoNotMatchAreRefusedWithTheShapes) {
  const RawTensor run = Tensor<float>("a.logits", "F32", {1, 2}, {1, 2});
  const auto longer = Compare({run}, {Tensor<float>("a.logits", "F32", {2, 2}, {1, 2, 3, 4})});
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message(), HasSubstr("[2, 2]"));
  const auto other = Compare({run}, {Tensor<float>("b.logits", "F32", {1, 2}, {1, 2})});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("a.logits"));
}

}  // namespace
}  // namespace levin
