// One client's connection: a small state machine on its own strand. A read is always under way, so
// that a client that leaves is noticed while its request waits. No coroutines: they compile slowly.
// Private to common/http, as it shows Asio's types: connection.cc has its life, its times
// and the writing, connection_read.cc the reading.
#pragma once

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "common/http/outbox.h"
#include "common/http/reply_bytes.h"

namespace levin {

using ConnectionStrand = boost::asio::strand<boost::asio::io_context::executor_type>;
using ConnectionTimer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>,
                                      ConnectionStrand>;

class Connection;
struct RequestParser;  // Beast's; connection_read.cc

// What the connections of a server share; outlives them.
struct ConnectionsShared {
  ConnectionsShared(HttpServerOptions o, HttpHandler h)
      : options(std::move(o)), handler(std::move(h)) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  std::atomic<int> open{0};
  std::atomic<bool> draining{false};

  Mutex mutex;
  bool stopping GUARDED_BY(mutex) = false;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections GUARDED_BY(mutex);
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Strand = ConnectionStrand;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Strand>;

  Connection(const Strand& strand, ConnectionsShared& shared)
      : shared_(shared), socket_(strand), timer_(strand) {}
  ~Connection();

  Socket& socket() { return socket_; }
  Strand strand() { return socket_.get_executor(); }

  // On the strand, after accept.
  void Start();
  // On the strand: the server stops. What the handler has said in full still leaves, in a second.
  void Stop();
  // On the strand.
  void Close();

 private:
  using error_code = boost::system::error_code;
  enum class Phase { kHead, kBody, kReply, kLinger, kClosed };

  bool Register();
  // A peer whose host vanished sends no FIN: probes find it within a minute.
  void WatchForDeadPeer();

  // --- reading ---

  void StartRead();
  // Waiting first and reading then spares each idle connection a buffer.
  void OnReadable(error_code error);
  void OnPeerLeft();
  // Goes through what has been read until more is needed or a request is being answered.
  void Advance();
  // True when the head is complete.
  bool ParseHead();
  bool BeginRequest(std::string_view head);
  void TakeRequestHead();
  // True when the whole request was here: it has been handed over.
  bool ParseBody();
  void Dispatch();
  void Compact();
  // An answer of the server's own; then the connection ends. It carries the request's id as far as
  // the head was read, else one made up.
  void Refuse(HttpResponse response);
  std::string_view Unused() const { return std::string_view(in_).substr(used_); }

  // --- writing ---

  // Writes what the handler (or Refuse) has said since the last time, if nothing is being written.
  void Pump();
  void Emit(Outgoing outgoing);
  void DecideKeepAlive(const HttpHeaders& headers);
  void StartWrite();
  void WriteSome();
  void OnWritten(const error_code& error, size_t n);
  void EndReply();
  // Closing with unread input would send RST and could destroy the reply on its way.
  void Linger();
  void StartWhole(HttpResponse response);
  void StartStreamHead(const HttpResponse& response);
  void AddChunk(std::string bytes, Outgoing::End end);
  ReplyShape shape() const {
    return {.keep_alive = keep_alive_, .http_1_0 = http_1_0_, .head_only = is_head_};
  }
  bool answered() const { return refusing_ || (outbox_ && outbox_->ended()); }

  // --- time ---

  static TimePoint Now() { return std::chrono::steady_clock::now(); }
  void Touch() { idle_since_ = Now(); }
  TimePoint Deadline() const;
  // The timer is moved only to an earlier time; when it fires too early it is set again.
  void Arm();
  void OnTime();

  ConnectionsShared& shared_;
  Socket socket_;
  ConnectionTimer timer_;
  std::string peer_;
  Phase phase_ = Phase::kHead;
  bool registered_ = false;
  bool counted_ = false;
  bool reading_ = false;
  bool input_over_ = false;  // FIN or RST
  bool stopping_ = false;

  std::string in_;  // read and not yet parsed, from used_
  size_t used_ = 0;
  size_t searched_ = 0;                    // of the head, for its end
  size_t received_ = 0;                    // of the request under way
  std::shared_ptr<RequestParser> parser_;  // shared: its type is known to one file only
  HttpRequest request_;
  bool is_head_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;

  std::shared_ptr<Outbox> outbox_;  // of the request that is being answered
  std::optional<HttpResponse> refusal_;
  bool refusing_ = false;
  bool ended_ = false;  // what is being written ends the reply
  bool writing_ = false;
  ReplyBytes out_;
  size_t written_ = 0;
  size_t stream_bytes_ = 0;

  TimePoint idle_since_, request_began_, last_write_, linger_until_, stop_until_;
  TimePoint armed_for_ = TimePoint::max();
};

}  // namespace levin
