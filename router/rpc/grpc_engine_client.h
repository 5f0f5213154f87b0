// A worker group over gRPC: Handshake, one Session that carries all requests of this router,
// heartbeats both ways, and a new Session, for ever, when one breaks. The lives of the requests are
// the RequestTracker's. A group silent for `suspect`, or whose leader says that a rank is silent
// (Capacity.suspect), gets no new work; one silent for `lost`, or whose stream breaks, has ended
// for all requests that it held.
//
// Any thread may call any method. Sinks are called from gRPC's threads and the client's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "router/dispatch/engine_client.h"
#include "router/dispatch/request_tracker.h"

namespace levin {

class GroupLink;

struct GrpcEngineClientOptions {
  std::string address;              // HOST:PORT or unix:PATH of the leader's Engine service
  std::string router_id;            // names this router in the group's logs
  uint64_t router_incarnation = 0;  // random; the lease is bound to it
  uint64_t tokenizer_hash = 0;      // 0: not compared
  std::string template_name;
  int64_t max_queued_requests = 1024;

  // The end of a Session that was not ours to end: the reason that the leader gave (EpochEnd's), or
  // "". From the client's thread, outside of all locks.
  std::function<void(const std::string& reason)> on_epoch_end;

  Duration heartbeat = std::chrono::seconds(1);
  Duration suspect = std::chrono::seconds(3);
  Duration lost = std::chrono::seconds(15);
  Duration reconnect_min = std::chrono::milliseconds(100);
  Duration reconnect_max = std::chrono::seconds(1);
  Duration handshake_limit = std::chrono::seconds(5);
  Duration goodbye_limit = std::chrono::seconds(1);  // for the leader's answer to a half-close
};

class GrpcEngineClient final : public EngineClient {
 public:
  // `on_change`: called from the client's thread, outside of all locks, when group() has changed
  // between null and not null. `clock` must outlive the client.
  GrpcEngineClient(GrpcEngineClientOptions options, const Clock& clock,
                   std::function<void()> on_change);
  ~GrpcEngineClient() override;  // Stop

  // kUnavailable (NO_GROUP, MODEL_LOADING, DRAINING), kInvalidArgument (longer than the group
  // allows), QUEUE_FULL, DEADLINE_EXCEEDED.
  Result<std::unique_ptr<Call>> Submit(Generation generation,
                                       std::unique_ptr<TokenSink> sink) override;
  Capacity capacity() const override;
  std::shared_ptr<const GroupInfo> group() const override;

  const RequestTracker& tracker() const;

  // Ends every request (kUnavailable DRAINING), says goodbye to the leader, joins the thread.
  void Stop();

 private:
  const std::unique_ptr<GroupLink> link_;
};

}  // namespace levin
