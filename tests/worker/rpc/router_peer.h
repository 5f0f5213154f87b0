#pragma once

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "common/rpc/transport.h"
#include "levin/v1/engine.grpc.pb.h"

namespace levin {

// A router as a test plays it: one stream, synchronous, frames numbered.
class RouterPeer final {
 public:
  explicit RouterPeer(const std::string& address)
      : stub_(v1::Engine::NewStub(MakeChannel(address))) {}
  ~RouterPeer() { Cancel(); }

  v1::HandshakeRequest Hello(uint64_t incarnation = 1) const {
    v1::HandshakeRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_router_id("test-router");
    request.set_router_incarnation(incarnation);
    return request;
  }
  Status Handshake(const v1::HandshakeRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    return FromGrpc(stub_->Handshake(&context, request, &info));
  }
  void Open(const std::string& token) {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context_->AddMetadata(kSessionMetadataKey, token);
    stream_ = stub_->Session(context_.get());
    sent_ = received_ = 0;
  }
  void Connect() {
    const Status status = Handshake(Hello());
    ASSERT_TRUE(status.ok()) << status.message();
    Open(info.session_token());
  }
  bool Send(v1::SessionRequest request) {
    request.set_seq(++sent_);
    request.set_ack(received_);
    return stream_->Write(request);
  }
  // The next frame for which `wanted` holds; others are passed over. False: the stream ended.
  bool Await(const std::function<bool(const v1::SessionResponse&)>& wanted,
             v1::SessionResponse& frame) {
    while (stream_->Read(&frame)) {
      EXPECT_EQ(frame.seq(), ++received_);
      if (wanted(frame)) return true;
    }
    return false;
  }
  bool Await(v1::SessionResponse::FrameCase kind, v1::SessionResponse& frame) {
    return Await([kind](const v1::SessionResponse& f) { return f.frame_case() == kind; }, frame);
  }
  void HalfClose() { stream_->WritesDone(); }
  Status Finish() {
    v1::SessionResponse rest;
    while (stream_->Read(&rest)) {
    }
    const Status status = FromGrpc(stream_->Finish());
    stream_.reset();
    return status;
  }
  void Cancel() {
    if (stream_ == nullptr) return;
    context_->TryCancel();
    (void)Finish();
  }

  v1::HandshakeResponse info;
  v1::Engine::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::Engine::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>> stream_;
  uint64_t sent_ = 0, received_ = 0;
};

}  // namespace levin
