#include "router/rpc/grpc_engine_client.h"

#include <utility>

#include "router/rpc/group_link.h"

namespace levin {

GrpcEngineClient::GrpcEngineClient(GrpcEngineClientOptions options, const Clock& clock,
                                   std::function<void()> on_change)
    : link_(std::make_unique<GroupLink>(std::move(options), clock, std::move(on_change))) {}

GrpcEngineClient::~GrpcEngineClient() { Stop(); }

Result<std::unique_ptr<Call>> GrpcEngineClient::Submit(Generation generation,
                                                       std::unique_ptr<TokenSink> sink) {
  RETURN_ERROR_IF(link_->CheckFits(generation));
  return link_->tracker().Submit(std::move(generation), std::move(sink));
}

Capacity GrpcEngineClient::capacity() const { return link_->capacity(); }
std::shared_ptr<const GroupInfo> GrpcEngineClient::group() const { return link_->group(); }
const RequestTracker& GrpcEngineClient::tracker() const { return link_->tracker(); }
void GrpcEngineClient::Stop() { link_->Stop(); }

}  // namespace levin
