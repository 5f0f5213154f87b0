// Runs a prepared request on a group: tokens in, reply events out. Shared by HTTP and gRPC and
// knows neither. Thread-safe; model, engine, clock and metrics (may be null) must live longer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "router/dispatch/engine_client.h"
#include "router/inference/inference_request.h"
#include "router/inference/reply_event.h"
#include "router/inference/request_check.h"
#include "router/inference/served_model.h"

namespace levin {

class RouterMetrics;

// A reply on its way. Dropping the last reference changes nothing; the reply goes on.
class Reply {
 public:
  virtual ~Reply() = default;
  // Ends it early; the sink gets Failed{kCancelled, "CANCELLED"} if it had not ended (kDeadline:
  // Failed{kDeadlineExceeded}). Any thread, any number of times, also after the end.
  virtual void Cancel(CancelReason reason) = 0;
};

class Generator final {
 public:
  Generator(const ServedModel& model, EngineClient& engine, const Clock& clock,
            int64_t request_timeout_ms = 0, const RouterMetrics* metrics = nullptr);

  const ServedModel& model() const { return model_; }
  // 0: no group was seen yet and no limit was given.
  int64_t window() const;

  // Of model and group; "" while no group is known.
  std::string fingerprint() const;

  // Fill the prompt of `request` (and where its thinking begins) from a text and from the body of a
  // chat request. A text that cannot fit the window is refused before it is encoded.
  Status SetTextPrompt(std::string_view text, InferenceRequest& request) const;
  Status SetChatPrompt(std::string_view request_json, InferenceRequest& request) const;

  // Everything that can be wrong with a request is found here, before a byte is answered.
  // kUnavailable NO_GROUP while no group is known.
  Result<PreparedRequest> Prepare(InferenceRequest request) const;

  // Events may come before it returns. On an error the sink is dropped uncalled.
  Result<std::shared_ptr<Reply>> Start(PreparedRequest request, std::unique_ptr<ReplySink> sink);

 private:
  Status CheckFits(const InferenceRequest& request, size_t bytes) const;

  const ServedModel& model_;
  EngineClient& engine_;
  const Clock& clock_;
  const int64_t request_timeout_ms_;
  const RouterMetrics* const metrics_;
};

}  // namespace levin
