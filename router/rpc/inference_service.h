// levin.v1.Inference for clients, over the same Generator as the HTTP API.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "router/inference/api_keys.h"
#include "router/inference/generator.h"

namespace levin {

// Any thread may call any method.
class InferenceService {
 public:
  // All must live longer. `on_idle`: from a gRPC thread, whenever no stream is left.
  static std::unique_ptr<InferenceService> Make(Generator& generator, const ApiKeys& keys,
                                                const Clock& clock, std::function<void()> on_idle);
  virtual ~InferenceService() = default;

  virtual grpc::Service& service() = 0;
  virtual void Drain() = 0;  // new streams are refused from now on
  virtual int in_flight() const = 0;
  virtual void CancelAll() = 0;
};

}  // namespace levin
