// The fixed values of every label. Each combination exists from the start with 0; what is not
// listed folds into `other`. No label holds request text, ids or addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/types.h"

namespace levin {

struct LabelSet {
  std::string_view name;
  std::span<const std::string_view> values;  // in the order of the enum; empty: known at start only
};

enum class Api : uint8_t { kChat, kCompletions, kGenerate, kTokenize, kDetokenize, kOther };
inline constexpr std::string_view kApiValues[] = {"chat",     "completions", "generate",
                                                  "tokenize", "detokenize",  "other"};
inline constexpr LabelSet kApiLabel{"api", kApiValues};
constexpr const LabelSet& LabelOf(Api) { return kApiLabel; }

enum class RequestClass : uint8_t { kSystem, kInteractive, kDefault, kBatch };
inline constexpr std::string_view kClassValues[] = {"system", "interactive", "default", "batch"};
inline constexpr LabelSet kClassLabel{"class", kClassValues};
constexpr const LabelSet& LabelOf(RequestClass) { return kClassLabel; }

enum class HttpCode : uint8_t {
  k200,
  k400,
  k401,
  k403,
  k404,
  k405,
  k408,
  k409,
  k413,
  k415,
  k429,
  k431,
  k499,
  k500,
  k501,
  k503,
  k504,
  kOther
};
inline constexpr std::string_view kHttpCodeValues[] = {"200", "400", "401", "403", "404", "405",
                                                       "408", "409", "413", "415", "429", "431",
                                                       "499", "500", "501", "503", "504", "other"};
inline constexpr LabelSet kHttpCodeLabel{"code", kHttpCodeValues};
constexpr const LabelSet& LabelOf(HttpCode) { return kHttpCodeLabel; }
HttpCode ToHttpCode(int status);

enum class FinishLabel : uint8_t { kStop, kLength, kToolCalls, kCancelled, kDeadline, kError };
inline constexpr std::string_view kFinishValues[] = {"stop",      "length",   "tool_calls",
                                                     "cancelled", "deadline", "error"};
inline constexpr LabelSet kFinishLabel{"reason", kFinishValues};
constexpr const LabelSet& LabelOf(FinishLabel) { return kFinishLabel; }
FinishLabel ToFinishLabel(FinishReason reason);  // kNone counts as an error

enum class RejectReason : uint8_t {
  kInvalidField,
  kUnsupported,
  kContextLengthExceeded,
  kCacheNeverFits,
  kQueueFull,
  kRateLimited,
  kModelLoading,
  kDraining,
  kNoGroup,
  kQueueTimeout,
  kEpochEnded,
  kDeadlineExceeded,
  kOther
};
inline constexpr std::string_view kRejectValues[] = {"invalid_field",
                                                     "unsupported",
                                                     "context_length_exceeded",
                                                     "cache_never_fits",
                                                     "queue_full",
                                                     "rate_limited",
                                                     "model_loading",
                                                     "draining",
                                                     "no_group",
                                                     "queue_timeout",
                                                     "epoch_ended",
                                                     "deadline_exceeded",
                                                     "other"};
inline constexpr LabelSet kRejectLabel{"reason", kRejectValues};
constexpr const LabelSet& LabelOf(RejectReason) { return kRejectLabel; }
RejectReason ToRejectReason(std::string_view status_reason);  // Status::reason(), "QUEUE_FULL"

enum class Phase : uint8_t { kQueued, kPrefill, kDecode };
inline constexpr std::string_view kPhaseValues[] = {"queued", "prefill", "decode"};
inline constexpr LabelSet kPhaseLabel{"phase", kPhaseValues};
constexpr const LabelSet& LabelOf(Phase) { return kPhaseLabel; }

enum class Transport : uint8_t { kSse, kGrpc };
inline constexpr std::string_view kTransportValues[] = {"sse", "grpc"};
inline constexpr LabelSet kTransportLabel{"transport", kTransportValues};
constexpr const LabelSet& LabelOf(Transport) { return kTransportLabel; }

enum class Outcome : uint8_t { kOk, kCancelled, kError };
inline constexpr std::string_view kOutcomeValues[] = {"ok", "cancelled", "error"};
inline constexpr LabelSet kOutcomeLabel{"outcome", kOutcomeValues};
constexpr const LabelSet& LabelOf(Outcome) { return kOutcomeLabel; }

enum class CachedPart : uint8_t { kNone, kPart, kFull };
inline constexpr std::string_view kCachedPartValues[] = {"none", "part", "full"};
inline constexpr LabelSet kCachedPartLabel{"cached", kCachedPartValues};
constexpr const LabelSet& LabelOf(CachedPart) { return kCachedPartLabel; }

enum class Stage : uint8_t { kParse, kTemplate, kTokenize, kAdmit, kSubmit, kDetokenize, kWrite };
inline constexpr std::string_view kStageValues[] = {"parse",  "template",   "tokenize", "admit",
                                                    "submit", "detokenize", "write"};
inline constexpr LabelSet kStageLabel{"stage", kStageValues};
constexpr const LabelSet& LabelOf(Stage) { return kStageLabel; }

enum class TokenKind : uint8_t { kPrompt, kCached, kOutput, kReplayed };
inline constexpr std::string_view kTokenKindValues[] = {"prompt", "cached", "output", "replayed"};
inline constexpr LabelSet kTokenKindLabel{"kind", kTokenKindValues};
constexpr const LabelSet& LabelOf(TokenKind) { return kTokenKindLabel; }

enum class EpochEndReason : uint8_t {
  kRankLost,
  kHang,
  kCollective,
  kDigest,
  kDevice,
  kDrain,
  kOther
};
inline constexpr std::string_view kEpochEndValues[] = {"rank_lost", "hang",  "collective", "digest",
                                                       "device",    "drain", "other"};
inline constexpr LabelSet kEpochEndLabel{"reason", kEpochEndValues};
constexpr const LabelSet& LabelOf(EpochEndReason) { return kEpochEndLabel; }

enum class GroupCacheKind : uint8_t { kReserved, kCached, kFree };
inline constexpr std::string_view kGroupCacheValues[] = {"reserved", "cached", "free"};
inline constexpr LabelSet kGroupCacheLabel{"kind", kGroupCacheValues};
constexpr const LabelSet& LabelOf(GroupCacheKind) { return kGroupCacheLabel; }

enum class SlotState : uint8_t { kUsed, kFree };
inline constexpr std::string_view kSlotValues[] = {"used", "free"};
inline constexpr LabelSet kSlotLabel{"state", kSlotValues};
constexpr const LabelSet& LabelOf(SlotState) { return kSlotLabel; }

enum class SequenceState : uint8_t { kRunning, kWaiting };
inline constexpr std::string_view kSequenceValues[] = {"running", "waiting"};
inline constexpr LabelSet kSequenceLabel{"state", kSequenceValues};
constexpr const LabelSet& LabelOf(SequenceState) { return kSequenceLabel; }

enum class CacheKind : uint8_t { kState, kKv, kReservedUnused, kFree };
inline constexpr std::string_view kCacheValues[] = {"state", "kv", "reserved_unused", "free"};
inline constexpr LabelSet kCacheLabel{"kind", kCacheValues};
constexpr const LabelSet& LabelOf(CacheKind) { return kCacheLabel; }

enum class StepKind : uint8_t { kDecode, kPrefill, kMixed, kEmpty };
inline constexpr std::string_view kStepValues[] = {"decode", "prefill", "mixed", "empty"};
inline constexpr LabelSet kStepLabel{"kind", kStepValues};
constexpr const LabelSet& LabelOf(StepKind) { return kStepLabel; }

enum class MemoryKind : uint8_t { kWeights, kPool, kWorkspace, kFree };
inline constexpr std::string_view kMemoryValues[] = {"weights", "pool", "workspace", "free"};
inline constexpr LabelSet kMemoryLabel{"kind", kMemoryValues};
constexpr const LabelSet& LabelOf(MemoryKind) { return kMemoryLabel; }

enum class StartupPhase : uint8_t { kStarting, kLoading, kAllocating, kWarming, kReady };
inline constexpr std::string_view kStartupValues[] = {"starting", "loading", "allocating",
                                                      "warming", "ready"};
inline constexpr LabelSet kStartupLabel{"phase", kStartupValues};
constexpr const LabelSet& LabelOf(StartupPhase) { return kStartupLabel; }

enum class LoggedLevel : uint8_t { kDebug, kInfo, kWarning, kError };
inline constexpr std::string_view kLoggedValues[] = {"debug", "info", "warning", "error"};
inline constexpr LabelSet kLoggedLabel{"level", kLoggedValues};
constexpr const LabelSet& LabelOf(LoggedLevel) { return kLoggedLabel; }

enum class Route : uint8_t {
  kChat,
  kCompletions,
  kModels,
  kModel,
  kTokenize,
  kDetokenize,
  kTokenizerInfo,
  kHealth,
  kLivez,
  kReadyz,
  kMetrics,
  kVersion,
  kOther
};
inline constexpr std::string_view kRouteValues[] = {"/v1/chat/completions",
                                                    "/v1/completions",
                                                    "/v1/models",
                                                    "/v1/models/{id}",
                                                    "/tokenize",
                                                    "/detokenize",
                                                    "/tokenizer_info",
                                                    "/health",
                                                    "/livez",
                                                    "/readyz",
                                                    "/metrics",
                                                    "/version",
                                                    "other"};
inline constexpr LabelSet kRouteLabel{"handler", kRouteValues};
constexpr const LabelSet& LabelOf(Route) { return kRouteLabel; }

enum class Method : uint8_t { kGet, kHead, kPost, kOptions, kOther };
inline constexpr std::string_view kMethodValues[] = {"GET", "HEAD", "POST", "OPTIONS", "other"};
inline constexpr LabelSet kMethodLabel{"method", kMethodValues};
constexpr const LabelSet& LabelOf(Method) { return kMethodLabel; }
Method ToMethod(std::string_view method);

enum class StatusGroup : uint8_t { k2xx, k4xx, k5xx, kOther };
inline constexpr std::string_view kStatusGroupValues[] = {"2xx", "4xx", "5xx", "other"};
inline constexpr LabelSet kStatusGroupLabel{"status", kStatusGroupValues};
constexpr const LabelSet& LabelOf(StatusGroup) { return kStatusGroupLabel; }
StatusGroup ToStatusGroup(int status);

// Values that are known when the process starts: names of groups, ranks of a group.
struct GroupIndex {
  int32_t index = 0;
  explicit operator size_t() const { return static_cast<size_t>(index); }
};
inline constexpr LabelSet kGroupLabel{"group", {}};
constexpr const LabelSet& LabelOf(GroupIndex) { return kGroupLabel; }

struct PeerRank {
  int32_t rank = 0;
  explicit operator size_t() const { return static_cast<size_t>(rank); }
};
inline constexpr LabelSet kPeerLabel{"peer", {}};
constexpr const LabelSet& LabelOf(PeerRank) { return kPeerLabel; }

}  // namespace levin
