#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/metrics/router_metrics.h"
#include "common/metrics/worker_metrics.h"

namespace levin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The value of the one series of `name` that has all `labels`, written as name="value".
double Value(const std::string& text, const std::string& name,
             const std::vector<std::string>& labels = {}) {
  std::vector<double> found;
  for (const std::string& line : Lines(text)) {
    if (!line.starts_with(name + "{")) continue;
    bool all = true;
    for (const std::string& label : labels) all = all && line.find(label) != std::string::npos;
    if (all) found.push_back(std::stod(line.substr(line.rfind(' '))));
  }
  EXPECT_EQ(found.size(), 1u) << name << " " << ::testing::PrintToString(labels);
  return found.empty() ? -1 : found[0];
}

// Families as the text declares them: name to type.
std::map<std::string, std::string> Types(const std::string& text) {
  std::map<std::string, std::string> types;
  for (const std::string& line : Lines(text)) {
    std::istringstream words(line);
    std::string mark, kind, name, type;
    words >> mark >> kind >> name >> type;
    if (mark != "#" || kind != "TYPE") continue;
    EXPECT_TRUE(types.emplace(name, type).second) << name << " is declared twice";
  }
  return types;
}

std::string TypeName(MetricType type) {
  if (type == MetricType::kCounter) return "counter";
  return type == MetricType::kGauge ? "gauge" : "histogram";
}

size_t SeriesCount(const std::string& text) {
  size_t count = 0;
  for (const std::string& line : Lines(text)) count += line.empty() || line[0] == '#' ? 0 : 1;
  return count;
}

RouterMetricsOptions TwoGroups() { return {.model_name = "levin-demo", .groups = {"a", "b"}}; }

void ExpectTheTable(const std::string& text, const std::set<Exporter>& exporters) {
  std::map<std::string, std::string> types = Types(text);
  for (const MetricSpec& spec : MetricTable()) {
    const std::string name(spec.name);
    if (!exporters.contains(spec.by)) {
      EXPECT_FALSE(types.contains(name)) << name;
      continue;
    }
    EXPECT_EQ(types[name], TypeName(spec.type)) << name;
    EXPECT_THAT(text, HasSubstr("# HELP " + name + " " + std::string(spec.help) + "\n"));
    types.erase(name);
  }
  for (const auto& [name, type] : types) {
    EXPECT_TRUE(name.starts_with("process_") || name.starts_with("vllm:") ||
                name.ends_with("_info"))
        << name << " is not in the table";
  }
}

TEST(MetricsTest, ARouterExportsTheRoutersPartOfTheTable) {
  ExpectTheTable(RouterMetrics(TwoGroups()).Serialize(), {Exporter::kRouter, Exporter::kAll});
}

TEST(MetricsTest, TheLeaderExportsTheLeadersPartAndOtherRanksTheirs) {
  const WorkerMetricsOptions leader{.model_name = "m", .group = "g", .rank = 0, .world_size = 4};
  const WorkerMetricsOptions other{.model_name = "m", .group = "g", .rank = 3, .world_size = 4};
  ExpectTheTable(WorkerMetrics(leader).Serialize(),
                 {Exporter::kLeader, Exporter::kRank, Exporter::kAll});
  ExpectTheTable(WorkerMetrics(other).Serialize(), {Exporter::kRank, Exporter::kAll});
}

TEST(MetricsTest, EverySeriesExistsFromTheStartWithZero) {
  const std::string text = RouterMetrics(TwoGroups()).Serialize();
  EXPECT_EQ(Value(text, "levin_requests_total",
                  {"api=\"chat\"", "class=\"interactive\"", "code=\"429\""}),
            0);
  EXPECT_EQ(Value(text, "levin_epoch_ends_total", {"group=\"b\"", "reason=\"digest\""}), 0);
  EXPECT_EQ(Value(text, "levin_itl_seconds_count"), 0);
  EXPECT_EQ(Value(text, "levin_finished_unacked"), 0);
  EXPECT_EQ(Value(text, "vllm:num_preemptions_total"), 0);
}

TEST(MetricsTest, EverySeriesCarriesTheModelAndAWorkersItsGroupAndRank) {
  for (const std::string& line : Lines(RouterMetrics(TwoGroups()).Serialize())) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_THAT(line, HasSubstr("model_name=\"levin-demo\""));
  }
  const WorkerMetrics worker({.model_name = "m", .group = "g", .rank = 1, .world_size = 2});
  for (const std::string& line : Lines(worker.Serialize())) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_THAT(line, HasSubstr("model_name=\"m\""));
    EXPECT_THAT(line, HasSubstr("group=\"g\""));
    EXPECT_THAT(line, HasSubstr("rank=\"1\""));
  }
}

TEST(MetricsTest, CountsUnderTheRightLabels) {
  RouterMetrics metrics(TwoGroups());
  metrics.requests(Api::kCompletions, RequestClass::kBatch, ToHttpCode(503)).Add();
  metrics.requests(Api::kCompletions, RequestClass::kBatch, ToHttpCode(503)).Add();
  metrics.rejections(ToRejectReason("QUEUE_FULL"), RequestClass::kDefault).Add();
  metrics.finish(ToFinishLabel(FinishReason::kLength)).Add(3);
  metrics.inflight_requests(Phase::kDecode).Add(2);
  metrics.inflight_requests(Phase::kDecode).Add(-1);
  metrics.group_cache_bytes(GroupIndex{1}, GroupCacheKind::kFree).Set(123);
  metrics.CountHttp(Route::kModels, ToMethod("GET"), 200, 0.2);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "levin_requests_total",
                  {"api=\"completions\"", "class=\"batch\"", "code=\"503\""}),
            2);
  EXPECT_EQ(Value(text, "levin_rejections_total", {"reason=\"queue_full\"", "class=\"default\""}),
            1);
  EXPECT_EQ(Value(text, "levin_finish_total", {"reason=\"length\""}), 3);
  EXPECT_EQ(Value(text, "levin_inflight_requests", {"phase=\"decode\""}), 1);
  EXPECT_EQ(Value(text, "levin_group_cache_bytes", {"group=\"b\"", "kind=\"free\""}), 123);
  EXPECT_EQ(Value(text, "http_requests_total",
                  {"handler=\"/v1/models\"", "method=\"GET\"", "status=\"2xx\""}),
            1);
}

TEST(MetricsTest, HistogramsAreCumulativeWithInclusiveEdgesAndSumInSeconds) {
  RouterMetrics metrics(TwoGroups());
  for (const double seconds : {0.001, 0.0015, 3600.0}) metrics.itl().Observe(seconds);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "levin_itl_seconds_bucket", {"le=\"0.001\""}), 1);
  EXPECT_EQ(Value(text, "levin_itl_seconds_bucket", {"le=\"0.002\""}), 2);
  EXPECT_EQ(Value(text, "levin_itl_seconds_bucket", {"le=\"30\""}), 2);
  EXPECT_EQ(Value(text, "levin_itl_seconds_bucket", {"le=\"+Inf\""}), 3);
  EXPECT_EQ(Value(text, "levin_itl_seconds_count"), 3);
  EXPECT_DOUBLE_EQ(Value(text, "levin_itl_seconds_sum"), 3600.0025);
}

TEST(MetricsTest, BucketEdgesRiseAndReachTheLongestRequest) {
  for (const MetricSpec& spec : MetricTable()) {
    EXPECT_EQ(spec.type == MetricType::kHistogram, !spec.buckets.empty()) << spec.name;
    for (size_t i = 1; i < spec.buckets.size(); ++i) {
      EXPECT_LT(spec.buckets[i - 1], spec.buckets[i]) << spec.name;
    }
  }
  EXPECT_EQ(FindMetric("levin_request_duration_seconds").buckets.back(), 7200);
  EXPECT_EQ(FindMetric("levin_ttft_seconds").buckets.back(), 3600);
  EXPECT_EQ(FindMetric("levin_queue_seconds").buckets.back(), 3600);
  EXPECT_EQ(FindMetric("levin_prompt_tokens").buckets.back(), 8 * 1024 * 1024);
}

TEST(MetricsTest, OnlyCountersEndWithTotalAndUnitsAreBaseUnits) {
  for (const MetricSpec& spec : MetricTable()) {
    if (spec.name.starts_with("vllm:")) continue;
    EXPECT_EQ(spec.name.ends_with("_total"), spec.type == MetricType::kCounter) << spec.name;
    EXPECT_FALSE(spec.name.ends_with("_ms")) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
  }
}

TEST(MetricsTest, WhatIsUnknownFoldsIntoOtherSoThatSeriesStayFew) {
  RouterMetrics metrics(TwoGroups());
  const size_t before = SeriesCount(metrics.Serialize());
  for (int i = 0; i < 10'000; ++i) {
    const std::string hostile = "name-" + std::to_string(i);
    metrics.rejections(ToRejectReason(hostile), RequestClass::kDefault).Add();
    metrics.CountHttp(Route::kOther, ToMethod(hostile), i, i * 0.001);
    metrics.requests(Api::kOther, RequestClass::kDefault, ToHttpCode(i)).Add();
  }
  const std::string text = metrics.Serialize();
  EXPECT_EQ(SeriesCount(text), before);
  EXPECT_EQ(Value(text, "levin_rejections_total", {"reason=\"other\"", "class=\"default\""}),
            10'000);
  EXPECT_THAT(text, Not(HasSubstr("name-")));
}

TEST(MetricsTest, EnumsAndLabelValuesKeepTheirOrder) {
  EXPECT_EQ(kHttpCodeValues[static_cast<size_t>(HttpCode::k504)], "504");
  EXPECT_EQ(ToHttpCode(200), HttpCode::k200);
  EXPECT_EQ(ToHttpCode(418), HttpCode::kOther);
  EXPECT_EQ(kRejectValues[static_cast<size_t>(RejectReason::kDeadlineExceeded)],
            "deadline_exceeded");
  EXPECT_EQ(ToRejectReason("EPOCH_ENDED"), RejectReason::kEpochEnded);
  EXPECT_EQ(kRouteValues[static_cast<size_t>(Route::kVersion)], "/version");
  EXPECT_EQ(kRouteValues[static_cast<size_t>(Route::kTokenizerInfo)], "/tokenizer_info");
  EXPECT_EQ(kFinishValues[static_cast<size_t>(ToFinishLabel(FinishReason::kDeadline))], "deadline");
  EXPECT_EQ(kStartupValues[static_cast<size_t>(StartupPhase::kReady)], "ready");
  EXPECT_EQ(ToMethod("DELETE"), Method::kOther);
  EXPECT_EQ(ToStatusGroup(499), StatusGroup::k4xx);
  EXPECT_EQ(ToStatusGroup(302), StatusGroup::kOther);
}

TEST(MetricsTest, RepeatsTheDataUnderVllmsNames) {
  RouterMetrics metrics(TwoGroups());
  metrics.inflight_requests(Phase::kQueued).Set(4);
  metrics.inflight_requests(Phase::kPrefill).Set(1);
  metrics.inflight_requests(Phase::kDecode).Set(2);
  metrics.tokens(TokenKind::kPrompt).Add(100);
  metrics.tokens(TokenKind::kCached).Add(30);
  metrics.tokens(TokenKind::kOutput).Add(7);
  metrics.finish(FinishLabel::kStop).Add(2);
  metrics.finish(FinishLabel::kToolCalls).Add(1);
  metrics.finish(FinishLabel::kCancelled).Add(5);
  metrics.ttft(CachedPart::kNone).Observe(0.5);
  metrics.ttft(CachedPart::kFull).Observe(0.25);
  metrics.request_duration(Api::kChat, Outcome::kOk).Observe(2);
  metrics.request_duration(Api::kCompletions, Outcome::kOk).Observe(3);
  metrics.request_duration(Api::kChat, Outcome::kError).Observe(9);
  metrics.tokens_per_frame().Observe(3);
  metrics.SetCacheConfig(64, 1000);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "vllm:num_requests_waiting"), 4);
  EXPECT_EQ(Value(text, "vllm:num_requests_running"), 3);
  EXPECT_EQ(Value(text, "vllm:prompt_tokens_total"), 100);
  EXPECT_EQ(Value(text, "vllm:generation_tokens_total"), 7);
  EXPECT_EQ(Value(text, "vllm:prefix_cache_queries_total"), 100);
  EXPECT_EQ(Value(text, "vllm:prefix_cache_hits_total"), 30);
  EXPECT_EQ(Value(text, "vllm:request_success_total", {"finished_reason=\"stop\""}), 3);
  EXPECT_EQ(Value(text, "vllm:request_success_total", {"finished_reason=\"abort\""}), 5);
  EXPECT_EQ(Value(text, "vllm:time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(Value(text, "vllm:time_to_first_token_seconds_bucket", {"le=\"0.3\""}), 1);
  EXPECT_EQ(Value(text, "vllm:e2e_request_latency_seconds_sum"), 5);
  EXPECT_EQ(Value(text, "vllm:iteration_tokens_total_count"), 1);
  EXPECT_EQ(Value(text, "vllm:cache_config_info", {"block_size=\"64\"", "num_gpu_blocks=\"1000\""}),
            1);
}

TEST(MetricsTest, CacheUsageIsThatOfTheFullerRegionOfTheFullestGroup) {
  RouterMetrics metrics(TwoGroups());
  EXPECT_EQ(Value(metrics.Serialize(), "vllm:kv_cache_usage_perc"), 0);
  metrics.group_cache_bytes(GroupIndex{0}, GroupCacheKind::kReserved).Set(10);
  metrics.group_cache_bytes(GroupIndex{0}, GroupCacheKind::kCached).Set(10);
  metrics.group_cache_bytes(GroupIndex{0}, GroupCacheKind::kFree).Set(20);
  EXPECT_EQ(Value(metrics.Serialize(), "vllm:kv_cache_usage_perc"), 0.25);
  metrics.group_state_slots(GroupIndex{1}, SlotState::kUsed).Set(3);
  metrics.group_state_slots(GroupIndex{1}, SlotState::kFree).Set(1);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "vllm:kv_cache_usage_perc"), 0.75);
  EXPECT_EQ(Value(text, "vllm:gpu_cache_usage_perc"), 0.75);
}

TEST(MetricsTest, LeavesVllmsNamesOutWhenAsked) {
  RouterMetricsOptions options = TwoGroups();
  options.vllm_names = false;
  EXPECT_THAT(RouterMetrics(options).Serialize(), Not(HasSubstr("vllm:num_requests")));
}

TEST(MetricsTest, ShowsOneStartupPhaseAtATime) {
  WorkerMetrics metrics({.model_name = "m", .group = "g"});
  metrics.process.SetPhase(StartupPhase::kLoading);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "levin_startup_phase", {"phase=\"loading\""}), 1);
  EXPECT_EQ(Value(text, "levin_startup_phase", {"phase=\"starting\""}), 0);
}

TEST(MetricsTest, KnowsEachPeerOfTheLeader) {
  WorkerMetrics metrics({.model_name = "m", .group = "g", .rank = 0, .world_size = 3});
  metrics.leader->rank_up(PeerRank{2}).Set(1);
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "levin_rank_up", {"peer=\"2\""}), 1);
  EXPECT_EQ(Value(text, "levin_rank_up", {"peer=\"0\""}), 0);
}

TEST(MetricsTest, ReportsTheProcessItself) {
  const std::string text = RouterMetrics(TwoGroups()).Serialize();
  EXPECT_GT(Value(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(Value(text, "process_open_fds"), 2);
  EXPECT_GT(Value(text, "process_start_time_seconds"), 1.5e9);
  EXPECT_GE(Value(text, "process_cpu_seconds_total"), 0);
}

TEST(MetricsTest, CountsFromManyThreadsWithoutLoss) {
  RouterMetrics metrics(TwoGroups());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics] {
      for (int n = 0; n < 1000; ++n) {
        metrics.tokens(TokenKind::kOutput).Add();
        metrics.itl().Observe(0.01);
        if (n % 250 == 0) {
          EXPECT_FALSE(metrics.Serialize().empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Serialize();
  EXPECT_EQ(Value(text, "levin_tokens_total", {"kind=\"output\""}), 4000);
  EXPECT_EQ(Value(text, "levin_itl_seconds_count"), 4000);
}

TEST(MetricsDeathTest, AFamilyUsedOtherwiseThanTheTableSaysIsOurMistake) {
  MetricRegistry registry({});
  EXPECT_DEATH((MetricFamily<Gauge>(registry, "levin_itl_seconds")), "levin_itl_seconds");
  EXPECT_DEATH((MetricFamily<Counter, Stage>(registry, "levin_finish_total")),
               "levin_finish_total");
  EXPECT_DEATH(FindMetric("levin_no_such"), "levin_no_such");
}

// vLLM's names break the rules that promtool knows (a colon, `perc`); they are left out.
std::string WithoutVllm(const std::string& text) {
  std::string kept;
  for (const std::string& line : Lines(text)) {
    if (line.find("vllm:") == std::string::npos) kept += line + "\n";
  }
  return kept;
}

TEST(MetricsTest, PromtoolFindsNothingToComplainAbout) {
  if (std::system("promtool --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "SKIPPED: promtool is not installed (Debian package `prometheus`)";
  }
  const WorkerMetricsOptions worker{.model_name = "m", .group = "g", .rank = 0, .world_size = 2};
  for (const std::string& text :
       {WithoutVllm(RouterMetrics(TwoGroups()).Serialize()), WorkerMetrics(worker).Serialize()}) {
    const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "metrics.txt";
    std::ofstream(file) << text;
    const std::string command = "promtool check metrics < " + file.string() + " 2>&1";
    std::FILE* tool = ::popen(command.c_str(), "r");
    ASSERT_NE(tool, nullptr);
    std::string said;
    for (int c = std::fgetc(tool); c != EOF; c = std::fgetc(tool))
      said.push_back(static_cast<char>(c));
    EXPECT_EQ(::pclose(tool), 0) << said;
    EXPECT_EQ(said, "");
    std::filesystem::remove(file);
  }
}

}  // namespace
}  // namespace levin
