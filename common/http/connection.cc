// The life of a connection, its time limits, and the writing of its replies.
#include "common/http/connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/http/http_text.h"

namespace levin {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
using Milliseconds = std::chrono::milliseconds;

constexpr int64_t kSlowestBytesPerMs = 16;
constexpr Milliseconds kLinger{5000};  // for the client to read the last reply and leave
constexpr Milliseconds kStopLinger{1000};
constexpr int kRefusedConnectionsMax = 64;

std::string AddressText(const net::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

}  // namespace

Connection::~Connection() {
  if (!registered_) return;
  MutexLock lock(shared_.mutex);
  shared_.connections.erase(this);
}

// On the strand, after accept.
void Connection::Start() {
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
void Connection::Stop() {
  if (phase_ != Phase::kReply || !answered()) return Close();
  stopping_ = true;
  stop_until_ = Now() + kStopLinger;
  Pump();
  Arm();
}

// On the strand.
void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (counted_) shared_.open.fetch_sub(1, std::memory_order_relaxed);
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (std::shared_ptr<Outbox> outbox = std::exchange(outbox_, nullptr)) outbox->Close();
}

bool Connection::Register() {
  MutexLock lock(shared_.mutex);
  if (shared_.stopping) return false;
  shared_.connections.emplace(this, weak_from_this());
  registered_ = true;
  return true;
}

// A peer whose host vanished sends no FIN: probes find it within a minute.
void Connection::WatchForDeadPeer() {
  const int fd = socket_.native_handle();
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

TimePoint Connection::Deadline() const {
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
void Connection::Arm() {
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

void Connection::OnTime() {
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

// --- writing ---

// Writes what the handler (or Refuse) has said since the last time, if nothing is being written.
void Connection::Pump() {
  if (writing_ || phase_ != Phase::kReply) return;
  if (refusing_) {
    if (!refusal_) return EndReply();
    StartWhole(*std::exchange(refusal_, std::nullopt));
    return StartWrite();
  }
  Emit(outbox_->Take());
}

void Connection::Emit(Outgoing outgoing) {
  if (outgoing.overflow) return Close();
  if (outgoing.whole) {
    StartWhole(*std::move(outgoing.head));
  } else {
    if (outgoing.head) StartStreamHead(*outgoing.head);
    AddChunk(std::move(outgoing.bytes), outgoing.end);
  }
  ended_ = outgoing.end != Outgoing::End::kOpen;
  if (outgoing.end == Outgoing::End::kAborted) keep_alive_ = false;
  if (out_.size() > 0) return StartWrite();
  if (ended_) return EndReply();
  Arm();
}

void Connection::StartWhole(HttpResponse response) {
  DecideKeepAlive(response.headers);
  PutWhole(std::move(response), shape(), out_);
}

void Connection::StartStreamHead(const HttpResponse& response) {
  DecideKeepAlive(response.headers);
  if (http_1_0_) keep_alive_ = false;
  PutStreamHead(response, shape(), out_);
}

void Connection::AddChunk(std::string bytes, Outgoing::End end) {
  if (is_head_) return outbox_->Written(bytes.size());
  stream_bytes_ = bytes.size();
  PutChunk(std::move(bytes), end == Outgoing::End::kFinished, shape(), out_);
}

void Connection::DecideKeepAlive(const HttpHeaders& headers) {
  if (shared_.draining.load(std::memory_order_relaxed) || AsksToClose(headers) || input_over_) {
    keep_alive_ = false;
  }
}

void Connection::StartWrite() {
  writing_ = true;
  written_ = 0;
  last_write_ = Now();
  WriteSome();
  Arm();
}

void Connection::WriteSome() {
  std::array<net::const_buffer, 3> buffers = {net::buffer(out_.head), net::buffer(out_.body),
                                              net::buffer(out_.tail)};
  size_t skip = written_;
  for (net::const_buffer& buffer : buffers) {
    const size_t here = std::min(skip, buffer.size());
    buffer += here;
    skip -= here;
  }
  socket_.async_write_some(buffers, [self = shared_from_this()](const error_code& error, size_t n) {
    self->OnWritten(error, n);
  });
}

void Connection::OnWritten(const error_code& error, size_t n) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  last_write_ = Now();
  written_ += n;
  if (written_ < out_.size()) return WriteSome();
  writing_ = false;
  out_.clear();
  if (outbox_) outbox_->Written(std::exchange(stream_bytes_, 0));
  if (phase_ == Phase::kReply && ended_) return EndReply();
  Pump();
  Arm();
}

void Connection::EndReply() {
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
void Connection::Linger() {
  phase_ = Phase::kLinger;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  in_.clear();
  used_ = 0;
  linger_until_ = Now() + kLinger;
  StartRead();
  Arm();
}

}  // namespace levin
