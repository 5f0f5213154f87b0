// Sizes and times of the protocol, shared by both ends (protocol.md 1). Plain numbers: no gRPC.
#pragma once

#include <cstddef>
#include <cstdint>

namespace levin {

inline constexpr uint32_t kProtocolMajor = 1;
inline constexpr uint32_t kProtocolMinor = 0;

inline constexpr int kMessageBytesMax = 16 << 20;            // both ends
inline constexpr int64_t kPromptInlineIdsMax = 4 << 20;      // in a Submit
inline constexpr size_t kSessionBacklogBytesMax = 4u << 20;  // leader: beyond, the Session closes
inline constexpr int64_t kSubmitWindow = 16;                 // waiting generations of one router
inline constexpr int64_t kHeartbeatMs = 1'000;
inline constexpr int64_t kSuspectMs = 3'000;
inline constexpr int64_t kLostMs = 15'000;
inline constexpr int64_t kLeaseMs = 10'000;
inline constexpr int64_t kHangMs = 5'000;  // max(this, 10 x predicted step)
inline constexpr int64_t kCollectiveLimitMs = 20'000;
inline constexpr int64_t kRendezvousStallMs = 600'000;   // without progress of any rank
inline constexpr int64_t kUnaryDeadlineMs = 5'000;       // Handshake and the other unary calls
inline constexpr int64_t kFinishedSetEveryMs = 10;       // at most so often, besides heartbeats
inline constexpr int64_t kEpochAheadMsMax = 86'400'000;  // a higher one from a peer is refused

inline constexpr char kSessionMetadataKey[] = "levin-session";

}  // namespace levin
