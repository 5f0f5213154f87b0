// The gRPC port of a router: levin.v1.Inference, health and reflection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "router/inference/api_keys.h"
#include "router/inference/generator.h"

namespace levin {

struct InferenceServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  std::vector<std::string> api_keys;
  int64_t message_bytes_max = 64 << 20;  // of a client's message
};

class InferenceServer {
 public:
  // Binds before it returns: a taken port is kUnavailable with reason PORT_IN_USE. Generator and
  // clock must live longer. `on_idle`: from a gRPC thread, whenever no stream is left.
  static Result<std::unique_ptr<InferenceServer>> Start(InferenceServerOptions options,
                                                        Generator& generator, const Clock& clock,
                                                        std::function<void()> on_idle);
  virtual ~InferenceServer() = default;  // Stop

  virtual const std::string& address() const = 0;  // HOST:PORT
  // What health says of "" and levin.v1.Inference; false at the start.
  virtual void SetServing(bool serving) = 0;
  // New calls are refused with DRAINING from now on; those that run go on.
  virtual void Drain() = 0;
  virtual int in_flight() const = 0;  // streams
  virtual void Stop() = 0;            // ends what is left
};

}  // namespace levin
