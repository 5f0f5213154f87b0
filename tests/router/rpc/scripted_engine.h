// A leader's Engine service that does what the test says: frames are sent and awaited one by one.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/mailbox.h"
#include "common/rpc/engine_codec.h"
#include "common/rpc/transport.h"
#include "levin/v1/engine.grpc.pb.h"

namespace levin {

class ScriptedEngine final : public v1::Engine::Service {
 public:
  explicit ScriptedEngine(const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    auto listening = StartServer(builder, address);
    CHECK(listening.has_value());
    server_ = std::move(*listening);
  }
  ~ScriptedEngine() override { Kill(); }

  const std::string& address() const { return server_.address; }

  // As if the process were killed.
  void Kill() {
    if (server_.server == nullptr) return;
    server_.server->Shutdown(std::chrono::system_clock::now());
    server_.server.reset();
  }

  void set_epoch(uint64_t epoch) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    epoch_ = epoch;
  }
  void RefuseHandshakes(grpc::Status status) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    refusal_ = std::move(status);
  }
  int handshakes() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return handshakes_;
  }

  // The next frame of the router that is no heartbeat; nothing set when none comes in time.
  v1::SessionRequest Next(std::chrono::milliseconds at_most = std::chrono::seconds(20)) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (auto frame = frames_.PopUntil(until)) {
      if (!frame->has_heartbeat()) return *frame;
    }
    return {};
  }
  v1::SessionRequest NextOfAnyKind() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    return frames_.PopUntil(until).value_or(v1::SessionRequest());
  }
  // Until a FinishedSet without live ordinals up to `watermark`.
  bool AwaitFinished(uint64_t watermark) {
    for (v1::SessionRequest frame = Next(); frame.seq() != 0; frame = Next()) {
      if (frame.has_finished_set() && frame.finished_set().watermark() == watermark &&
          frame.finished_set().live_delta_size() == 0) {
        return true;
      }
    }
    return false;
  }
  // Waits until `count` Sessions were opened in all.
  bool AwaitSessions(int count) EXCLUDES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (sessions_ < count || stream_ == nullptr) {
      if (!changed_.WaitUntil(mutex_, until)) return false;
    }
    return true;
  }
  bool AwaitHalfClose() EXCLUDES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (half_closes_ == 0) {
      if (!changed_.WaitUntil(mutex_, until)) return false;
    }
    return true;
  }

  // Sends on the open Session; seq and epoch are filled in (unless epoch is set).
  void Send(v1::SessionResponse frame) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (stream_ == nullptr) return;
    frame.set_seq(++seq_);
    if (frame.epoch() == 0) frame.set_epoch(epoch_);
    stream_->Write(frame);
  }
  void SendAccepted(uint64_t ordinal, bool admitted) {
    v1::SessionResponse frame;
    frame.mutable_accepted()->set_ordinal(ordinal);
    frame.mutable_accepted()->set_admitted(admitted);
    Send(frame);
  }
  void SendTokens(uint64_t ordinal, uint64_t first_index, const std::vector<uint32_t>& ids,
                  uint64_t epoch = 0) {
    v1::SessionResponse frame;
    frame.set_epoch(epoch);
    v1::TokenRun* run = frame.mutable_tokens()->add_runs();
    run->set_ordinal(ordinal);
    run->set_first_index(first_index);
    for (uint32_t id : ids) run->add_ids(id);
    Send(frame);
  }
  void SendFinished(uint64_t ordinal, uint64_t output_tokens,
                    v1::EndReason reason = v1::END_REASON_STOP_ID) {
    v1::SessionResponse frame;
    frame.mutable_finished()->set_ordinal(ordinal);
    frame.mutable_finished()->set_reason(reason);
    frame.mutable_finished()->mutable_usage()->set_output_tokens(output_tokens);
    Send(frame);
  }
  void SendFreed(uint64_t watermark) {
    v1::SessionResponse frame;
    frame.mutable_freed_ack()->set_watermark(watermark);
    Send(frame);
  }
  // Breaks the Session without a word.
  void Break() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  grpc::Status Handshake(grpc::ServerContext*, const v1::HandshakeRequest* request,
                         v1::HandshakeResponse* response) override {
    MutexLock lock(mutex_);
    ++handshakes_;
    if (!refusal_.ok()) return refusal_;
    response->set_group_id("scripted");
    response->set_epoch(epoch_);
    response->set_session_token("token-" + std::to_string(epoch_));
    response->set_max_model_len(1000);
    response->set_max_new_tokens(1000);
    response->set_max_num_seqs(8);
    response->set_prompt_inline_ids_max(500);
    response->mutable_geometry()->set_block_tokens(64);
    response->mutable_geometry()->set_bytes_per_block(4096);
    response->mutable_geometry()->set_ranks(2);
    response->mutable_geometry()->set_vocab_size(512);
    response->mutable_capacity()->set_total_blocks(100);
    return grpc::Status::OK;
  }

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SessionResponse, v1::SessionRequest>* stream) override {
    {
      MutexLock lock(mutex_);
      const auto token = context->client_metadata().find("levin-session");
      if (token == context->client_metadata().end() ||
          std::string(token->second.data(), token->second.size()) !=
              "token-" + std::to_string(epoch_)) {
        return {grpc::StatusCode::FAILED_PRECONDITION, "wrong session token"};
      }
      ++sessions_;
      seq_ = 0;
      stream_ = stream;
      context_ = context;
      changed_.NotifyAll();
    }
    v1::SessionRequest frame;
    uint64_t seq = 0;
    while (stream->Read(&frame)) {
      CHECK_EQ(frame.seq(), ++seq);
      CHECK(frames_.TryPush(frame));
    }
    MutexLock lock(mutex_);
    if (!context->IsCancelled()) ++half_closes_;
    stream_ = nullptr;
    context_ = nullptr;
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

 private:
  ListeningServer server_;
  Mailbox<v1::SessionRequest> frames_{100'000};
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t epoch_ GUARDED_BY(mutex_) = 7;
  uint64_t seq_ GUARDED_BY(mutex_) = 0;
  int sessions_ GUARDED_BY(mutex_) = 0;
  int handshakes_ GUARDED_BY(mutex_) = 0;
  int half_closes_ GUARDED_BY(mutex_) = 0;
  grpc::Status refusal_ GUARDED_BY(mutex_);
  grpc::ServerReaderWriter<v1::SessionResponse, v1::SessionRequest>* stream_ GUARDED_BY(mutex_) =
      nullptr;
  grpc::ServerContext* context_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace levin
