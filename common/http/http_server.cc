// One connection is a small state machine on its own strand; a read is always under way, so that a
// client that leaves is noticed while its request waits. No coroutines: this file compiles in a
// fraction of the time.
#include "common/http/http_server.h"

#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <unordered_map>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/http/http_text.h"
#include "common/http/outbox.h"

namespace levin {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Strand = net::strand<net::io_context::executor_type>;
using Socket = net::basic_stream_socket<tcp, Strand>;
using Acceptor = net::basic_socket_acceptor<tcp, Strand>;
using Timer = net::basic_waitable_timer<std::chrono::steady_clock,
                                        net::wait_traits<std::chrono::steady_clock>, Strand>;
using Parser = http::request_parser<http::string_body>;
using Milliseconds = std::chrono::milliseconds;

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kPipelinedBytesMax = 64 * 1024;  // of later requests while one is answered
constexpr int64_t kSlowestBytesPerMs = 16;
constexpr Milliseconds kLinger{5000};  // for the client to read the last reply and leave
constexpr Milliseconds kStopLinger{1000};
constexpr Milliseconds kAcceptPause{100};
constexpr int kRefusedConnectionsMax = 64;
constexpr size_t kRequestIdMax = 128;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

class Connection;

// What the connections of a server share; outlives them.
struct Shared {
  Shared(HttpServerOptions o, HttpHandler h) : options(std::move(o)), handler(std::move(h)) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  std::atomic<int> open{0};
  std::atomic<bool> draining{false};

  Mutex mutex;
  bool stopping GUARDED_BY(mutex) = false;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections GUARDED_BY(mutex);
};

// Case does not count in names of fields, versions and codings.
bool Is(boost::beast::string_view text, std::string_view expected) {
  return boost::beast::iequals(text, {expected.data(), expected.size()});
}

// nullopt when the request may go on to its body.
std::optional<HttpResponse> Objection(const Parser::value_type& request) {
  using http::field;
  const auto coding = request.equal_range(field::transfer_encoding);
  if (coding.first != coding.second) {
    if (request.count(field::content_length) != 0 || request.version() < 11) {
      return ErrorReply(400, "malformed_request",
                        "transfer-encoding with a content-length, or in HTTP/1.0");
    }
    if (std::next(coding.first) != coding.second || !Is(coding.first->value(), "chunked")) {
      return ErrorReply(501, "not_implemented", "the only transfer coding understood is chunked");
    }
  }
  if (request.version() >= 11 && request.count(field::host) != 1) {
    return ErrorReply(400, "malformed_request", "exactly one Host header is required");
  }
  if (request.count(field::expect) != 0 && !Is(request[field::expect], "100-continue")) {
    return ErrorReply(417, "expectation_failed", "the only expectation understood is 100-continue");
  }
  return std::nullopt;
}

HttpResponse ParseErrorReply(const error_code& error, const HttpServerOptions& options) {
  if (error == http::error::body_limit) {
    return ErrorReply(413, "request_too_large",
                      "the request body is larger than the limit of " +
                          std::to_string(options.body_bytes_max) + " bytes");
  }
  if (error == http::error::bad_version) {
    return ErrorReply(505, "http_version_not_supported", "only HTTP/1.0 and HTTP/1.1 are spoken");
  }
  return ErrorReply(400, "malformed_request", "malformed HTTP request: " + error.message());
}

// The id by which the client knows its request: "" unless visible ASCII of a sane length.
std::string RequestIdOf(const Parser::value_type& request) {
  const boost::beast::string_view id = request["x-request-id"];
  const bool sane = id.size() <= kRequestIdMax &&
                    std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 127; });
  return sane ? std::string(id.data(), id.size()) : std::string();
}

HttpResponse HeaderLimitReply(const HttpServerOptions& options) {
  return ErrorReply(431, "headers_too_large",
                    "the request headers are larger than the limit of " +
                        std::to_string(options.header_bytes_max) + " bytes");
}

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(const Strand& strand, Shared& shared)
      : shared_(shared), socket_(strand), timer_(strand) {}
  ~Connection() {
    if (!registered_) return;
    MutexLock lock(shared_.mutex);
    shared_.connections.erase(this);
  }

  Socket& socket() { return socket_; }

  // On the strand, after accept.
  void Start() {
    if (!Register()) return;
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    WatchForDeadPeer();
    const auto peer = socket_.remote_endpoint(ignored);
    peer_ = AddressText(peer.address());
    Touch();
    const int open = shared_.open.fetch_add(1, std::memory_order_relaxed) + 1;
    counted_ = true;
    const int most = shared_.options.connections_max;
    if (open > most + kRefusedConnectionsMax) return Close();
    if (open > most) {
      return Refuse(ErrorReply(503, "too_many_connections",
                               "too many open connections, the limit is " + std::to_string(most)));
    }
    StartRead();
    Arm();
  }

  // On the strand: the server stops. What the handler has said in full still leaves, in a second.
  void Stop() {
    if (phase_ != Phase::kReply || !answered()) return Close();
    stopping_ = true;
    stop_until_ = Now() + kStopLinger;
    Pump();
    Arm();
  }

  // On the strand.
  void Close() {
    if (phase_ == Phase::kClosed) return;
    phase_ = Phase::kClosed;
    if (counted_) shared_.open.fetch_sub(1, std::memory_order_relaxed);
    timer_.cancel();
    error_code ignored;
    socket_.close(ignored);
    if (std::shared_ptr<Outbox> outbox = std::exchange(outbox_, nullptr)) outbox->Close();
  }

  Strand strand() { return socket_.get_executor(); }

 private:
  enum class Phase { kHead, kBody, kReply, kLinger, kClosed };

  bool Register() {
    MutexLock lock(shared_.mutex);
    if (shared_.stopping) return false;
    shared_.connections.emplace(this, weak_from_this());
    registered_ = true;
    return true;
  }

  // A peer whose host vanished sends no FIN: probes find it within a minute.
  void WatchForDeadPeer() {
    const int fd = socket_.native_handle();
    const auto set = [fd](int level, int name, int value) {
      ::setsockopt(fd, level, name, &value, sizeof(value));
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  }

  static std::string AddressText(const net::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6()).to_string();
    }
    return address.to_string();
  }

  // --- reading ---

  void StartRead() {
    if (reading_ || phase_ == Phase::kClosed || input_over_) return;
    if (phase_ == Phase::kReply && in_.size() >= kPipelinedBytesMax) return;
    reading_ = true;
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
      self->reading_ = false;
      self->OnReadable(error);
    });
  }

  // Waiting first and reading then spares each idle connection a buffer.
  void OnReadable(error_code error) {
    if (phase_ == Phase::kClosed) return;
    std::array<char, kReadBytes> bytes;
    const size_t n = error ? 0 : socket_.read_some(net::buffer(bytes), error);
    if (error == net::error::would_block) return StartRead();
    if (error) return OnPeerLeft();
    if (phase_ == Phase::kLinger || refusing_) return StartRead();
    in_.append(bytes.data(), n);
    if (received_ == 0) request_began_ = Now();
    received_ += n;
    Advance();
  }

  void OnPeerLeft() {
    input_over_ = true;
    // What has been answered in full is still delivered to a client that closed its half.
    if (phase_ != Phase::kReply || !answered()) Close();
  }

  // Goes through what has been read until more is needed or a request is being answered.
  void Advance() {
    bool moved = true;
    while (moved) {
      moved = phase_ == Phase::kHead ? ParseHead() : phase_ == Phase::kBody && ParseBody();
    }
    if (phase_ == Phase::kClosed) return;
    StartRead();
    Arm();
  }

  // True when the head is complete.
  bool ParseHead() {
    while (in_.size() - used_ >= 2 && in_[used_] == '\r' && in_[used_ + 1] == '\n') used_ += 2;
    const std::string_view text = Unused();
    if (text.empty() || text == "\r") {
      Compact();
      received_ = text.size();
      return false;
    }
    // No request begins like this, but a TLS hello does: waiting for a line end would be in vain.
    if (text[0] <= ' ' || text[0] > '~') {
      Refuse(ErrorReply(400, "malformed_request", "malformed HTTP request: bad method"));
      return false;
    }
    const size_t limit = shared_.options.header_bytes_max;
    const size_t end = text.find("\r\n\r\n", searched_ > 3 ? searched_ - 3 : 0);
    if (std::min(end, text.size()) > limit) {
      Refuse(HeaderLimitReply(shared_.options));
      return false;
    }
    if (end == std::string_view::npos) {
      searched_ = text.size();
      Compact();
      return false;
    }
    searched_ = 0;
    return BeginRequest(text.substr(0, end + 4));
  }

  bool BeginRequest(std::string_view head) {
    is_head_ = http_1_0_ = false;
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(head.size()));
    parser_->body_limit(shared_.options.body_bytes_max);
    parser_->eager(false);
    error_code error;
    used_ += parser_->put(net::buffer(head.data(), head.size()), error);
    if (!error && !parser_->is_header_done()) error = http::error::bad_field;
    if (error) {
      Refuse(ParseErrorReply(error, shared_.options));
      return false;
    }
    const Parser::value_type& request = parser_->get();
    TakeRequestHead(request);
    if (std::optional<HttpResponse> objection = Objection(request)) {
      Refuse(*std::move(objection));
      return false;
    }
    phase_ = Phase::kBody;
    if (request.count(http::field::expect) != 0 && !parser_->is_done() && Unused().empty()) {
      head_out_ = kContinue;
      StartWrite();
    }
    parser_->eager(true);
    return true;
  }

  void TakeRequestHead(const Parser::value_type& request) {
    const auto text = [](boost::beast::string_view view) {
      return std::string(view.data(), view.size());
    };
    request_ = {};
    request_.method = text(request.method_string());
    const std::string target = text(request.target());
    std::tie(request_.path, request_.query) = SplitTarget(target);
    for (const auto& field : request) {
      std::string name = text(field.name_string());
      for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      request_.headers.emplace_back(std::move(name), text(field.value()));
    }
    request_.peer = peer_;
    is_head_ = request_.method == "HEAD";
    http_1_0_ = request.version() < 11;
    keep_alive_ = parser_->keep_alive();
  }

  // True when the whole request was here: it has been handed over.
  bool ParseBody() {
    while (!parser_->is_done()) {
      const std::string_view text = Unused();
      error_code error;
      const size_t taken =
          text.empty() ? 0 : parser_->put(net::buffer(text.data(), text.size()), error);
      used_ += taken;
      if (error == http::error::need_more) error = {};
      if (!error && taken == 0 && text.size() > shared_.options.header_bytes_max) {
        error = http::error::bad_chunk_extension;  // or trailers: neither ends
      }
      if (error) {
        Refuse(ParseErrorReply(error, shared_.options));
        return false;
      }
      if (taken == 0) break;
    }
    Compact();
    if (!parser_->is_done()) return false;
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    Dispatch();
    return true;
  }

  void Dispatch() {
    phase_ = Phase::kReply;
    last_write_ = Now();
    outbox_ = std::make_shared<Outbox>(
        [weak = weak_from_this(), strand = strand()] {
          net::post(strand, [weak] {
            if (const std::shared_ptr<Connection> self = weak.lock()) self->Pump();
          });
        },
        shared_.options.stream_bytes_max);
    shared_.handler(std::move(request_), MakeResponder(outbox_));
    Pump();
  }

  std::string_view Unused() const { return std::string_view(in_).substr(used_); }

  void Compact() {
    in_.erase(0, used_);
    used_ = 0;
    if (in_.empty() && in_.capacity() > 4 * kReadBytes) in_.shrink_to_fit();
  }

  // --- writing ---

  // An answer of the server's own; then the connection ends. It carries the request's id as far as
  // the head was read.
  void Refuse(HttpResponse response) {
    if (parser_) {
      if (std::string id = RequestIdOf(parser_->get()); !id.empty()) {
        response.headers.emplace_back("x-request-id", std::move(id));
      }
    }
    phase_ = Phase::kReply;
    refusing_ = true;
    keep_alive_ = false;
    in_.clear();
    used_ = 0;
    refusal_ = std::move(response);
    if (!writing_) Pump();
    StartRead();
    Arm();
  }

  // Writes what the handler (or Refuse) has said since the last time, if nothing is being written.
  void Pump() {
    if (writing_ || phase_ != Phase::kReply) return;
    if (refusing_) {
      if (!refusal_) return EndReply();
      FormatWhole(*std::exchange(refusal_, std::nullopt));
      return StartWrite();
    }
    Emit(outbox_->Take());
  }

  void Emit(Outgoing outgoing) {
    if (outgoing.overflow) return Close();
    if (outgoing.whole) {
      FormatWhole(*std::move(outgoing.head));
    } else {
      if (outgoing.head) FormatStreamHead(*outgoing.head);
      FormatChunk(std::move(outgoing.bytes), outgoing.end);
    }
    ended_ = outgoing.end != Outgoing::End::kOpen;
    if (outgoing.end == Outgoing::End::kAborted) keep_alive_ = false;
    if (OutBytes() > 0) return StartWrite();
    if (ended_) return EndReply();
    Arm();
  }

  void DecideKeepAlive(const HttpHeaders& headers) {
    if (shared_.draining.load(std::memory_order_relaxed) || AsksToClose(headers) || input_over_) {
      keep_alive_ = false;
    }
  }

  void FormatWhole(HttpResponse response) {
    DecideKeepAlive(response.headers);
    const bool bodiless = response.status == 204 || response.status == 304;
    head_out_ = FormatHead({.status = response.status,
                            .framing = bodiless ? BodyFraming::kNone : BodyFraming::kLength,
                            .body_bytes = response.body.size(),
                            .keep_alive = keep_alive_,
                            .http_1_0 = http_1_0_},
                           response.headers);
    if (!is_head_ && !bodiless) body_out_ = std::move(response.body);
  }

  void FormatStreamHead(const HttpResponse& response) {
    DecideKeepAlive(response.headers);
    if (http_1_0_) keep_alive_ = false;
    head_out_ = FormatHead({.status = response.status,
                            .framing = http_1_0_ ? BodyFraming::kToEnd : BodyFraming::kChunked,
                            .keep_alive = keep_alive_,
                            .http_1_0 = http_1_0_},
                           response.headers);
  }

  void FormatChunk(std::string bytes, Outgoing::End end) {
    if (is_head_) return outbox_->Written(bytes.size());
    stream_bytes_ = bytes.size();
    if (!bytes.empty()) {
      if (!http_1_0_) {
        head_out_ += ChunkHead(bytes.size());
        tail_out_ = kChunkTail;
      }
      body_out_ = std::move(bytes);
    }
    if (end == Outgoing::End::kFinished && !http_1_0_) tail_out_ += kLastChunk;
  }

  size_t OutBytes() const { return head_out_.size() + body_out_.size() + tail_out_.size(); }

  bool answered() const { return refusing_ || (outbox_ && outbox_->ended()); }

  void StartWrite() {
    writing_ = true;
    written_ = 0;
    last_write_ = Now();
    WriteSome();
    Arm();
  }

  void WriteSome() {
    std::array<net::const_buffer, 3> buffers = {net::buffer(head_out_), net::buffer(body_out_),
                                                net::buffer(tail_out_)};
    size_t skip = written_;
    for (net::const_buffer& buffer : buffers) {
      const size_t here = std::min(skip, buffer.size());
      buffer += here;
      skip -= here;
    }
    socket_.async_write_some(buffers,
                             [self = shared_from_this()](const error_code& error, size_t n) {
                               self->OnWritten(error, n);
                             });
  }

  void OnWritten(const error_code& error, size_t n) {
    if (phase_ == Phase::kClosed) return;
    if (error) return Close();
    last_write_ = Now();
    written_ += n;
    if (written_ < OutBytes()) return WriteSome();
    writing_ = false;
    head_out_.clear();
    body_out_.clear();
    tail_out_.clear();
    if (outbox_) outbox_->Written(std::exchange(stream_bytes_, 0));
    if (phase_ == Phase::kReply && ended_) return EndReply();
    Pump();
    Arm();
  }

  void EndReply() {
    ended_ = false;
    if (std::shared_ptr<Outbox> outbox = std::exchange(outbox_, nullptr)) outbox->Close();
    if (input_over_ || stopping_) return Close();
    if (!keep_alive_) return Linger();
    phase_ = Phase::kHead;
    received_ = Unused().size();
    request_began_ = Now();
    Touch();
    Advance();
  }

  // Closing with unread input would send RST and could destroy the reply on its way.
  void Linger() {
    phase_ = Phase::kLinger;
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    in_.clear();
    used_ = 0;
    linger_until_ = Now() + kLinger;
    StartRead();
    Arm();
  }

  // --- time ---

  static TimePoint Now() { return std::chrono::steady_clock::now(); }
  void Touch() { idle_since_ = Now(); }

  TimePoint Deadline() const {
    const HttpServerOptions& options = shared_.options;
    TimePoint deadline = TimePoint::max();
    const auto at_most = [&deadline](TimePoint time) { deadline = std::min(deadline, time); };
    if (stopping_) at_most(stop_until_);
    if (phase_ == Phase::kLinger) at_most(linger_until_);
    if (phase_ == Phase::kHead || phase_ == Phase::kBody) {
      const Milliseconds idle(options.read_idle_ms_max);
      if (received_ == 0) {
        at_most(idle_since_ + idle);
      } else {
        at_most(request_began_ + idle +
                Milliseconds(static_cast<int64_t>(received_) / kSlowestBytesPerMs));
      }
    }
    if (writing_) {
      at_most(last_write_ + Milliseconds(options.write_stuck_ms_max));
    } else if (outbox_) {
      const int64_t ping_ms = outbox_->ping_ms();
      if (ping_ms > 0) at_most(last_write_ + Milliseconds(ping_ms));
    }
    return deadline;
  }

  // The timer is moved only to an earlier time; when it fires too early it is set again.
  void Arm() {
    if (phase_ == Phase::kClosed) return;
    const TimePoint deadline = Deadline();
    if (deadline >= armed_for_) return;
    armed_for_ = deadline;
    timer_.expires_at(deadline);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (error == net::error::operation_aborted) return;
      self->armed_for_ = TimePoint::max();
      self->OnTime();
    });
  }

  void OnTime() {
    if (phase_ == Phase::kClosed) return;
    if (Deadline() <= Now()) {
      if (stopping_ || writing_ || phase_ == Phase::kLinger) return Close();
      if (phase_ == Phase::kReply) {
        last_write_ = Now();
        Emit(outbox_->TakePing());
      } else if (received_ == 0) {
        return Close();
      } else {
        return Refuse(ErrorReply(408, "request_timeout", "the request did not arrive in time"));
      }
    }
    Arm();
  }

  Shared& shared_;
  Socket socket_;
  Timer timer_;
  std::string peer_;
  Phase phase_ = Phase::kHead;
  bool registered_ = false;
  bool counted_ = false;
  bool reading_ = false;
  bool input_over_ = false;  // FIN or RST
  bool stopping_ = false;

  std::string in_;  // read and not yet parsed, from used_
  size_t used_ = 0;
  size_t searched_ = 0;  // of the head, for its end
  size_t received_ = 0;  // of the request under way
  std::optional<Parser> parser_;
  HttpRequest request_;
  bool is_head_ = false;
  bool http_1_0_ = false;
  bool keep_alive_ = true;

  std::shared_ptr<Outbox> outbox_;  // of the request that is being answered
  std::optional<HttpResponse> refusal_;
  bool refusing_ = false;
  bool ended_ = false;  // what is being written ends the reply
  bool writing_ = false;
  std::string head_out_, body_out_, tail_out_;
  size_t written_ = 0;
  size_t stream_bytes_ = 0;

  TimePoint idle_since_, request_began_, last_write_, linger_until_, stop_until_;
  TimePoint armed_for_ = TimePoint::max();
};

// The address as a URL would have it: "host:port", "[v6]:port".
std::string AddressName(const std::string& host, uint16_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// getaddrinfo instead of Asio's resolver: once, at start, and much quicker to compile.
Result<tcp::endpoint> Resolve(const std::string& host, uint16_t port) {
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Error(InvalidArgument("host '" + host + "' has no address: " + ::gai_strerror(error))
                     .WithParam("host"));
  }
  tcp::endpoint endpoint;
  endpoint.resize(found->ai_addrlen);
  std::memcpy(endpoint.data(), found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  endpoint.port(port);
  return endpoint;
}

class Server final : public HttpServer {
 public:
  Server(HttpServerOptions options, HttpHandler handler)
      : shared_(std::move(options), std::move(handler)) {}
  ~Server() override { Stop(); }

  Status Listen() {
    const HttpServerOptions& options = shared_.options;
    ASSIGN_OR_RETURN_STATUS(const tcp::endpoint endpoint, Resolve(options.host, options.port));
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    // Without it a restart would wait for the old connections' TIME_WAIT. Two servers on one port
    // are refused all the same.
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.protocol() == tcp::v6()) {
      acceptor_.set_option(net::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (!error) return Status::Ok();
    const std::string message =
        "cannot listen on " + AddressName(options.host, options.port) + ": " + error.message();
    if (error == net::error::address_in_use) return {Code::kUnavailable, "PORT_IN_USE", message};
    return FailedPrecondition(message);
  }

  void Run() {
    Accept();
    for (int i = 0; i < std::max(1, shared_.options.threads); ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
  }

  uint16_t port() const override { return port_; }
  int open_connections() const override { return shared_.open.load(std::memory_order_relaxed); }

  void StopAccepting() override {
    shared_.draining = true;
    if (io_.get_executor().running_in_this_thread()) {
      net::post(acceptor_.get_executor(), [this] { CloseAcceptor(); });
      return;
    }
    MutexLock lock(stop_mutex_);
    if (!stopped_) CloseAcceptorAndWait();
  }

  void Stop() override {
    CHECK(!io_.get_executor().running_in_this_thread(), "a server cannot stop itself");
    MutexLock lock(stop_mutex_);
    if (std::exchange(stopped_, true)) return;
    shared_.draining = true;
    if (!threads_.empty()) CloseAcceptorAndWait();
    for (const std::shared_ptr<Connection>& connection : RefuseNewConnections()) {
      net::post(connection->strand(), [connection] { connection->Stop(); });
    }
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  // On the acceptor's strand, as everything about it.
  void Accept() {
    auto connection = std::make_shared<Connection>(net::make_strand(io_), shared_);
    acceptor_.async_accept(connection->socket(), [this, connection](const error_code& error) {
      if (!acceptor_.is_open()) return;
      if (!error) {
        net::post(connection->strand(), [connection] { connection->Start(); });
        return Accept();
      }
      // Out of descriptors, mostly: a pause, so that this is no busy loop.
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](const error_code& cancelled) {
        if (!cancelled && acceptor_.is_open()) Accept();
      });
    });
  }

  void CloseAcceptorAndWait() {
    const auto closed = std::make_shared<std::promise<void>>();
    net::post(acceptor_.get_executor(), [this, closed] {
      CloseAcceptor();
      closed->set_value();
    });
    closed->get_future().wait();
  }

  void CloseAcceptor() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  std::vector<std::shared_ptr<Connection>> RefuseNewConnections() {
    std::vector<std::shared_ptr<Connection>> open;
    MutexLock lock(shared_.mutex);
    shared_.stopping = true;
    for (const auto& [unused, connection] : shared_.connections) {
      if (std::shared_ptr<Connection> alive = connection.lock()) open.push_back(std::move(alive));
    }
    return open;
  }

  Shared shared_;
  uint16_t port_ = 0;
  Mutex stop_mutex_;
  bool stopped_ GUARDED_BY(stop_mutex_) = false;
  std::vector<std::thread> threads_;
  net::io_context io_;
  net::executor_work_guard<net::io_context::executor_type> work_{io_.get_executor()};
  Acceptor acceptor_{net::make_strand(io_)};
  Timer pause_{acceptor_.get_executor()};
};

}  // namespace

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                      HttpHandler handler) {
  auto server = std::make_unique<Server>(std::move(options), std::move(handler));
  RETURN_ERROR_IF(server->Listen());
  server->Run();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace levin
