#include "worker/engine/eval_job.h"

#include <gtest/gtest.h>

#include <string>

namespace levin {
namespace {

std::string Refused(const std::string& json) {
  const Result<EvalJob> job = ParseEvalJob(json);
  return job ? "accepted" : job.error().message();
}

TEST(EvalJobTest, ReadsEveryFieldAndKeepsTheOrderOfTheFile) {
  const Result<EvalJob> job = ParseEvalJob(
      R"({"ids": {"z": [1, 2], "a": [3]}, "out": "/x.safetensors", "greedy": 4, "states": true,
          "trace": true, "chunk_tokens": 7, "batch": true})");
  ASSERT_TRUE(job) << job.error().message();
  ASSERT_EQ(job->prompts.size(), 2u);
  EXPECT_EQ(job->prompts[0].name, "z");
  EXPECT_EQ(job->prompts[0].ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(job->prompts[1].name, "a");
  EXPECT_EQ(job->out, "/x.safetensors");
  EXPECT_EQ(job->greedy, 4);
  EXPECT_EQ(job->chunk_tokens, 7);
  EXPECT_TRUE(job->states && job->trace && job->batch);
}

TEST(EvalJobTest, LeavesOutWhatIsNotAskedFor) {
  const Result<EvalJob> job = ParseEvalJob(R"({"ids": {"a": [3]}, "out": "x"})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->greedy, 0);
  EXPECT_EQ(job->chunk_tokens, 0);
  EXPECT_FALSE(job->states || job->trace || job->batch);
}

TEST(EvalJobTest, NamesWhatIsWrong) {
  EXPECT_NE(Refused("{").find("not JSON"), std::string::npos);
  EXPECT_NE(Refused("[]").find("object"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [3]}})").find("'out'"), std::string::npos);
  EXPECT_NE(Refused(R"({"out": "x"})").find("'ids'"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {}, "out": "x"})").find("'ids'"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": []}, "out": "x"})").find("'ids.a'"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [-1]}, "out": "x"})").find("-1"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [1.5]}, "out": "x"})").find("1.5E0"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [1]}, "out": 3})").find("'out'"), std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [1]}, "out": "x", "greedy": -1})").find("'greedy'"),
            std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [1]}, "out": "x", "batch": 1})").find("'batch'"),
            std::string::npos);
  EXPECT_NE(Refused(R"({"ids": {"a": [1]}, "out": "x", "beam": 1})").find("'beam'"),
            std::string::npos);
  EXPECT_NE(ReadEvalJob("/nowhere/job.json").error().message().find("/nowhere/job.json"),
            std::string::npos);
}

TEST(EvalJobTest, OneByOneIsTheOneTokenForm) {
  EvalJob job;
  SchedulerOptions options;
  options.vocab_size = 1 << 20;
  job.chunk_tokens = 7;
  ApplyEvalJob(job, options);
  EXPECT_FALSE(options.stepwise_prompt);
  EXPECT_EQ(options.admission_skips, 0);
  EXPECT_EQ(options.tokens_per_step_max, 256);  // 2^28 logits in a step
  job.chunk_tokens = 1;
  ApplyEvalJob(job, options);
  EXPECT_TRUE(options.stepwise_prompt);
}

}  // namespace
}  // namespace levin
