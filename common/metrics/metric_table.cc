#include "common/metrics/metric_table.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace levin {
namespace {

// Bucket edges in seconds unless the name says otherwise; each reaches the longest documented case.
constexpr double kFast[] = {50e-6, 100e-6, 200e-6, 500e-6, 1e-3,   2e-3,   5e-3,
                            10e-3, 20e-3,  50e-3,  100e-3, 200e-3, 500e-3, 1};
constexpr double kStep[] = {.5e-3, 1e-3,  2e-3,  3e-3,  5e-3,  7.5e-3, 10e-3,
                            15e-3, 20e-3, 30e-3, 50e-3, 75e-3, .1,     .15,
                            .2,    .3,    .5,    1,     2,     5,      10};
constexpr double kGap[] = {1e-3,  2e-3,  3e-3,  5e-3,  7.5e-3, 10e-3, 15e-3, 20e-3,
                           25e-3, 30e-3, 40e-3, 50e-3, 75e-3,  .1,    .15,   .2,
                           .3,    .5,    1,     2,     5,      10,    30};
constexpr double kFirst[] = {5e-3, 10e-3, 20e-3, 40e-3, 60e-3, 80e-3, .1,   .15,  .2,  .3,
                             .5,   .75,   1,     1.5,   2,     3,     5,    7.5,  10,  15,
                             20,   30,    60,    120,   300,   600,   1200, 1800, 3600};
constexpr double kWhole[] = {.05, .1, .25, .5,  1,   2,    5,    10,   20,
                             30,  60, 120, 300, 600, 1200, 1800, 3600, 7200};
constexpr double kTokens[] = {1,      16,     64,      256,     1024,    2048,
                              4096,   8192,   16384,   32768,   65536,   131072,
                              262144, 524288, 1048576, 2097152, 4194304, 8388608};
constexpr double kRows[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

constexpr MetricType kC = MetricType::kCounter;
constexpr MetricType kG = MetricType::kGauge;
constexpr MetricType kH = MetricType::kHistogram;
constexpr Exporter kR = Exporter::kRouter;
constexpr Exporter kL = Exporter::kLeader;
constexpr Exporter kK = Exporter::kRank;
constexpr Exporter kA = Exporter::kAll;

constexpr MetricSpec kTable[] = {
    // What clients asked, and how it ended.
    {"levin_requests_total",
     kC,
     kR,
     {&kApiLabel, &kClassLabel, &kHttpCodeLabel},
     {},
     "Answered requests by HTTP code or its gRPC twin."},
    {"levin_finish_total", kC, kR, {&kFinishLabel}, {}, "Ended generations by reason."},
    {"levin_rejections_total",
     kC,
     kR,
     {&kRejectLabel, &kClassLabel},
     {},
     "Requests refused before they ran."},
    {"levin_client_disconnects_total",
     kC,
     kR,
     {&kPhaseLabel},
     {},
     "Clients that left before the end."},
    {"levin_inflight_requests", kG, kR, {&kPhaseLabel}, {}, "Requests under way."},
    {"levin_open_streams", kG, kR, {&kTransportLabel}, {}, "Open answer streams."},
    {"levin_queue_depth", kG, kR, {&kClassLabel}, {}, "Requests that wait to be submitted."},
    // How long it took.
    {"levin_request_duration_seconds",
     kH,
     kR,
     {&kApiLabel, &kOutcomeLabel},
     kWhole,
     "Time from accept to the last byte."},
    {"levin_ttft_seconds",
     kH,
     kR,
     {&kCachedPartLabel},
     kFirst,
     "Time from accept to the first token."},
    {"levin_itl_seconds", kH, kR, {}, kGap, "Time between tokens of one stream."},
    {"levin_stream_stall_seconds", kH, kR, {}, kGap, "Longest gap of a stream, once per stream."},
    {"levin_queue_seconds",
     kH,
     kR,
     {&kClassLabel},
     kFirst,
     "Time from accept to admission by the leader."},
    {"levin_prefill_seconds", kH, kR, {}, kFirst, "Prefill time as the leader reports it."},
    {"levin_decode_seconds", kH, kR, {}, kWhole, "Decode time as the leader reports it."},
    {"levin_stage_duration_seconds",
     kH,
     kR,
     {&kStageLabel},
     kFast,
     "Time of one stage inside the router."},
    // How many tokens.
    {"levin_prompt_tokens", kH, kR, {}, kTokens, "Prompt tokens per request."},
    {"levin_output_tokens", kH, kR, {}, kTokens, "Generated tokens per request."},
    {"levin_cached_tokens",
     kH,
     kR,
     {},
     kTokens,
     "Prompt tokens resumed from the cache per request."},
    {"levin_tokens_total", kC, kR, {&kTokenKindLabel}, {}, "Tokens by kind."},
    {"vllm:iteration_tokens_total", kH, kR, {}, kRows, "Tokens per frame of the leader."},
    // The groups, seen from the router.
    {"levin_group_up", kG, kR, {&kGroupLabel}, {}, "1 when the group is healthy and warm."},
    {"levin_group_cache_bytes",
     kG,
     kR,
     {&kGroupLabel, &kGroupCacheLabel},
     {},
     "Cache of the group by use, as last reported; over routers take the maximum."},
    {"levin_group_state_slots",
     kG,
     kR,
     {&kGroupLabel, &kSlotLabel},
     {},
     "State slots of the group, as last reported."},
    {"levin_group_sequences",
     kG,
     kR,
     {&kGroupLabel, &kSequenceLabel},
     {},
     "Sequences of the group, as last reported."},
    {"levin_epoch_ends_total",
     kC,
     kR,
     {&kGroupLabel, &kEpochEndLabel},
     {},
     "Ends of a group's epoch by reason."},
    {"levin_finished_unacked",
     kG,
     kR,
     {},
     {},
     "Ended generations whose memory is not yet reported free."},
    {"levin_finished_unacked_age_seconds", kG, kR, {}, {}, "Age of the oldest of them."},
    {"levin_cancel_to_free_seconds",
     kH,
     kR,
     {},
     kStep,
     "Time from a cancel to the report that its memory is free."},
    {"http_requests_total",
     kC,
     kR,
     {&kRouteLabel, &kMethodLabel, &kStatusGroupLabel},
     {},
     "HTTP requests."},
    {"http_request_duration_seconds", kH, kR, {&kRouteLabel}, kWhole, "Time of HTTP requests."},
    // The leader.
    {"levin_sequences", kG, kL, {&kSequenceLabel}, {}, "Sequences by state."},
    {"levin_state_slots", kG, kL, {&kSlotLabel}, {}, "State slots by use."},
    {"levin_cache_bytes",
     kG,
     kL,
     {&kCacheLabel},
     {},
     "Cache of one rank by use; the sum is its pool."},
    {"levin_steps_total", kC, kL, {&kStepLabel}, {}, "Steps by kind."},
    {"levin_step_duration_seconds", kH, kL, {&kStepLabel}, kStep, "Time from plan to result."},
    {"levin_step_prefill_tokens", kH, kL, {}, kTokens, "Prefill tokens per step."},
    {"levin_step_sequences", kH, kL, {}, kRows, "Sequences per step."},
    {"levin_plan_delivery_seconds",
     kH,
     kL,
     {},
     kFast,
     "Time from the encoded plan to its receipt by the last rank."},
    {"levin_connected_routers", kG, kL, {}, {}, "Routers with an open session."},
    {"levin_epoch", kG, kL, {}, {}, "Current epoch."},
    {"levin_rank_up", kG, kL, {&kPeerLabel}, {}, "1 while the leader hears the rank."},
    {"levin_rank_step_lag", kG, kL, {&kPeerLabel}, {}, "Steps by which the rank is behind."},
    {"levin_heartbeat_age_seconds",
     kG,
     kL,
     {&kPeerLabel},
     {},
     "Time since the rank was last heard."},
    {"levin_digest_interval_steps", kG, kL, {}, {}, "1 when every step's digest is compared."},
    // Every rank.
    {"levin_collective_wait_seconds",
     kH,
     kK,
     {},
     kFast,
     "Waiting for the other ranks in one step; the lowest rank is the straggler."},
    {"levin_device_memory_bytes", kG, kK, {&kMemoryLabel}, {}, "Memory of the device by use."},
    // Every process.
    {"levin_startup_progress_ratio", kG, kA, {}, {}, "Bytes of weights loaded over all of them."},
    {"levin_startup_phase", kG, kA, {&kStartupLabel}, {}, "1 for the present phase."},
    {"levin_draining", kG, kA, {}, {}, "1 while the process drains."},
    {"levin_log_messages_total", kC, kA, {&kLoggedLabel}, {}, "Log messages by level."},
};

}  // namespace

std::span<const MetricSpec> MetricTable() { return kTable; }

const MetricSpec& FindMetric(std::string_view name) {
  const auto found = std::find_if(std::begin(kTable), std::end(kTable),
                                  [name](const MetricSpec& spec) { return spec.name == name; });
  CHECK(found != std::end(kTable), "no metric family is called", name);
  return *found;
}

}  // namespace levin
