// tests/golden/network/sampling.json: every stage of api.md 10.1, then real draws under Pearson's
// statistic. The folder's README says what the fields mean.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "worker/sample/filter.h"
#include "worker/sample/logit_rules.h"
#include "worker/sample/sampler.h"

namespace levin {
namespace {

namespace json = boost::json;

struct Case {
  std::string name;
  const json::object* want = nullptr;
  std::vector<float> logits;
  std::vector<bool> defined;
  SamplingParams params;
  TokenHistory history;
};

float Float(const json::value& value) { return static_cast<float>(value.to_number<double>()); }

SamplingParams Params(const json::object& in) {
  SamplingParams params;
  for (const auto& [key, value] : in) {
    if (key == "temperature")
      params.temperature = Float(value);
    else if (key == "top_k")
      params.top_k = value.to_number<int32_t>();
    else if (key == "top_p")
      params.top_p = Float(value);
    else if (key == "min_p")
      params.min_p = Float(value);
    else if (key == "repetition_penalty")
      params.repetition_penalty = Float(value);
    else if (key == "frequency_penalty")
      params.frequency_penalty = Float(value);
    else if (key == "presence_penalty")
      params.presence_penalty = Float(value);
    else if (key == "logit_bias") {
      for (const auto& [id, bias] : value.as_object())
        params.logit_bias.emplace_back(std::stoi(std::string(id)), Float(bias));
    } else {
      EXPECT_EQ(key, "masked");
    }
  }
  return params;
}

Case MakeCase(const json::object& rows, const json::object& want) {
  Case out;
  out.want = &want;
  out.name = std::string(want.at("row").as_string()) + ' ' + json::serialize(want.at("params"));
  for (const json::value& logit : rows.at(want.at("row").as_string()).as_array())
    out.logits.push_back(Float(logit));
  out.defined.assign(out.logits.size(), true);
  const json::object& params = want.at("params").as_object();
  if (const json::value* masked = params.if_contains("masked"))
    for (const json::value& id : masked->as_array()) out.defined[id.to_number<size_t>()] = false;
  out.params = Params(params);
  std::set<TokenId> prompt;
  for (const json::value& id : want.at("prompt").as_array()) prompt.insert(id.to_number<TokenId>());
  out.history.prompt.assign(prompt.begin(), prompt.end());
  for (const json::value& id : want.at("output").as_array())
    out.history.Add(id.to_number<TokenId>());
  return out;
}

class SamplingGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& dir : testing::GoldenDirs("network")) {
      std::ifstream file(dir / "sampling.json");
      if (!file) continue;
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      files_.push_back(json::parse(text));
    }
    ASSERT_FALSE(files_.empty()) << "no sampling.json";
    for (const json::value& file : files_)
      for (const json::value& want : file.at("cases").as_array())
        cases_.push_back(MakeCase(file.at("rows").as_object(), want.as_object()));
    ASSERT_GE(cases_.size(), 79u);
  }

  std::vector<json::value> files_;
  std::vector<Case> cases_;
};

// After undefined ids and rules: what the filters see.
std::vector<float> Penalised(const Case& c) {
  std::vector<float> row = c.logits;
  for (size_t id = 0; id < row.size(); ++id)
    if (!c.defined[id]) row[id] = kMasked;
  ApplyLogitRules(c.params, c.history, static_cast<int64_t>(c.history.output.size()), row);
  return row;
}

std::vector<TokenId> Ids(const std::vector<Candidate>& candidates) {
  std::vector<TokenId> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
  return ids;
}

std::vector<TokenId> Ids(const json::value& value) {
  std::vector<TokenId> ids;
  for (const json::value& id : value.as_array()) ids.push_back(id.to_number<TokenId>());
  std::sort(ids.begin(), ids.end());
  return ids;
}

void ExpectProbabilities(const std::vector<Candidate>& candidates, const json::value& want) {
  const json::array& expected = want.as_array();
  std::vector<double> got(expected.size(), 0.0);
  double best = candidates.front().scaled, total = 0;
  for (const Candidate& c : candidates) best = std::max<double>(best, c.scaled);
  for (const Candidate& c : candidates) total += std::exp(c.scaled - best);
  for (const Candidate& c : candidates)
    got[static_cast<size_t>(c.token)] = std::exp(c.scaled - best) / total;
  for (size_t id = 0; id < got.size(); ++id)
    EXPECT_NEAR(got[id], expected[id].to_number<double>(), 1e-5) << "id " << id;
}

TEST_F(SamplingGolden, MasksBiasAndPenaltiesGiveTheKnownLogits) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    const std::vector<float> row = Penalised(c);
    const json::array& want = c.want->at("penalised_logits").as_array();
    for (size_t id = 0; id < row.size(); ++id) {
      if (want[id].is_null())
        EXPECT_EQ(row[id], kMasked) << "id " << id;
      else
        EXPECT_NEAR(row[id], want[id].to_number<double>(), 1e-5 * (1 + std::abs(row[id])));
    }
  }
}

TEST_F(SamplingGolden, TemperatureAndFiltersKeepTheKnownIdsWithTheKnownProbabilities) {
  int checked = 0;
  for (const Case& c : cases_) {
    if (c.params.greedy()) continue;
    SCOPED_TRACE(c.name);
    std::vector<Candidate> candidates = Scale(Penalised(c), c.params.temperature);
    ExpectProbabilities(candidates, c.want->at("temperature_probs"));
    KeepMinP(c.params.min_p, candidates);
    EXPECT_EQ(Ids(candidates), Ids(c.want->at("kept_min_p")));
    KeepTopK(c.params.top_k, candidates);
    EXPECT_EQ(Ids(candidates), Ids(c.want->at("kept_top_k")));
    KeepTopP(c.params.top_p, candidates);
    EXPECT_EQ(Ids(candidates), Ids(c.want->at("kept_top_p")));
    ExpectProbabilities(candidates, c.want->at("probs"));
    ++checked;
  }
  EXPECT_GE(checked, 60);
}

TEST_F(SamplingGolden, GreedyRowsChooseTheKnownToken) {
  int checked = 0;
  for (const Case& c : cases_) {
    if (!c.params.greedy()) continue;
    SCOPED_TRACE(c.name);
    Sampler sampler(static_cast<int32_t>(c.logits.size()), c.defined);
    const Draw draw = sampler.Sample(c.logits, c.params, c.history, 6);
    EXPECT_FALSE(draw.numeric_fault);
    EXPECT_EQ(draw.token.token, c.want->at("greedy").to_number<TokenId>());
    ++checked;
  }
  EXPECT_GE(checked, 8);
}

// Pools the ids that expect fewer than 5 draws; an id of probability 0 must never come.
double Pearson(const std::vector<int>& counts, const json::array& probs, int draws) {
  double statistic = 0, pooled_expected = 0;
  int pooled_count = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const double expected = probs[id].to_number<double>() * draws;
    if (expected == 0) {
      EXPECT_EQ(counts[id], 0) << "impossible id " << id;
    }
    if (expected < 5) {
      pooled_expected += expected;
      pooled_count += counts[id];
      continue;
    }
    statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  if (pooled_expected > 0)
    statistic += (pooled_count - pooled_expected) * (pooled_count - pooled_expected) /
                 std::max(pooled_expected, 1.0);
  return statistic;
}

TEST_F(SamplingGolden, DrawsFollowTheKnownProbabilities) {
  constexpr int kDraws = 5'000;
  for (const Case& c : cases_) {
    if (c.params.greedy()) continue;
    SCOPED_TRACE(c.name);
    Sampler sampler(static_cast<int32_t>(c.logits.size()), c.defined);
    SamplingParams params = c.params;
    std::vector<int> counts(c.logits.size(), 0);
    for (int i = 0; i < kDraws; ++i) {  // both the seed and the index change from draw to draw
      params.seed = static_cast<uint64_t>(i % 100);
      const Draw draw = sampler.Sample(c.logits, params, c.history, i / 100);
      ASSERT_FALSE(draw.numeric_fault);
      ++counts[static_cast<size_t>(draw.token.token)];
    }
    EXPECT_LE(Pearson(counts, c.want->at("probs").as_array(), kDraws),
              c.want->at("chi2_limit").to_number<double>());
  }
}

}  // namespace
}  // namespace levin
