// How a connection reads: bytes become requests, through Beast's parser (here alone), or refusals.
#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <tuple>
#include <utility>

#include "common/http/connection.h"
#include "common/http/http_text.h"
#include "common/http/request_id.h"

namespace levin {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body>;

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kPipelinedBytesMax = 64 * 1024;  // of later requests while one is answered
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

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

HttpResponse HeaderLimitReply(const HttpServerOptions& options) {
  return ErrorReply(431, "headers_too_large",
                    "the request headers are larger than the limit of " +
                        std::to_string(options.header_bytes_max) + " bytes");
}

}  // namespace

struct RequestParser {
  Parser beast;
};

void Connection::StartRead() {
  if (reading_ || phase_ == Phase::kClosed || input_over_) return;
  if (phase_ == Phase::kReply && in_.size() >= kPipelinedBytesMax) return;
  reading_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->reading_ = false;
    self->OnReadable(error);
  });
}

// Waiting first and reading then spares each idle connection a buffer.
void Connection::OnReadable(error_code error) {
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

void Connection::OnPeerLeft() {
  input_over_ = true;
  // What has been answered in full is still delivered to a client that closed its half.
  if (phase_ != Phase::kReply || !answered()) Close();
}

// Goes through what has been read until more is needed or a request is being answered.
void Connection::Advance() {
  bool moved = true;
  while (moved) {
    moved = phase_ == Phase::kHead ? ParseHead() : phase_ == Phase::kBody && ParseBody();
  }
  if (phase_ == Phase::kClosed) return;
  StartRead();
  Arm();
}

// True when the head is complete.
bool Connection::ParseHead() {
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

bool Connection::BeginRequest(std::string_view head) {
  is_head_ = http_1_0_ = false;
  parser_ = std::make_shared<RequestParser>();
  parser_->beast.header_limit(static_cast<uint32_t>(head.size()));
  parser_->beast.body_limit(shared_.options.body_bytes_max);
  parser_->beast.eager(false);
  error_code error;
  used_ += parser_->beast.put(net::buffer(head.data(), head.size()), error);
  if (!error && !parser_->beast.is_header_done()) error = http::error::bad_field;
  if (error) {
    Refuse(ParseErrorReply(error, shared_.options));
    return false;
  }
  const Parser::value_type& request = parser_->beast.get();
  TakeRequestHead();
  if (std::optional<HttpResponse> objection = Objection(request)) {
    Refuse(*std::move(objection));
    return false;
  }
  phase_ = Phase::kBody;
  if (request.count(http::field::expect) != 0 && !parser_->beast.is_done() && Unused().empty()) {
    out_.head = kContinue;
    StartWrite();
  }
  parser_->beast.eager(true);
  return true;
}

void Connection::TakeRequestHead() {
  const Parser::value_type& request = parser_->beast.get();
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
  keep_alive_ = parser_->beast.keep_alive();
}

// True when the whole request was here: it has been handed over.
bool Connection::ParseBody() {
  while (!parser_->beast.is_done()) {
    const std::string_view text = Unused();
    error_code error;
    const size_t taken =
        text.empty() ? 0 : parser_->beast.put(net::buffer(text.data(), text.size()), error);
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
  if (!parser_->beast.is_done()) return false;
  request_.body = std::move(parser_->beast.get().body());
  parser_.reset();
  Dispatch();
  return true;
}

void Connection::Dispatch() {
  phase_ = Phase::kReply;
  last_write_ = Now();
  outbox_ = std::make_shared<Outbox>(
      [weak = weak_from_this(), strand = strand()] {
        net::post(strand, [weak] {
          if (const std::shared_ptr<Connection> self = weak.lock()) self->Pump();
        });
      },
      shared_.options.stream_bytes_max, std::string(request_.Header("x-request-id")));
  shared_.handler(std::move(request_), MakeResponder(outbox_));
  Pump();
}

void Connection::Compact() {
  in_.erase(0, used_);
  used_ = 0;
  if (in_.empty() && in_.capacity() > 4 * kReadBytes) in_.shrink_to_fit();
}

// An answer of the server's own; then the connection ends. It carries the request's id as far as
// the head was read, else one made up.
void Connection::Refuse(HttpResponse response) {
  std::string_view id;
  if (parser_) {
    const boost::beast::string_view sent = parser_->beast.get()["x-request-id"];
    id = {sent.data(), sent.size()};
  } else if (phase_ == Phase::kHead) {
    id = RequestIdInHead(Unused());
  }
  response.headers.emplace_back("x-request-id", OwnAnswerId(id));
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

}  // namespace levin
