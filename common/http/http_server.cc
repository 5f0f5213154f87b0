// Listening: the port, its connections as they are accepted, the threads, the stop.
#include "common/http/http_server.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <future>
#include <thread>

#include "common/base/check.h"
#include "common/http/connection.h"

namespace levin {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
using Acceptor = net::basic_socket_acceptor<tcp, ConnectionStrand>;

constexpr std::chrono::milliseconds kAcceptPause{100};

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

  ConnectionsShared shared_;
  uint16_t port_ = 0;
  Mutex stop_mutex_;
  bool stopped_ GUARDED_BY(stop_mutex_) = false;
  std::vector<std::thread> threads_;
  net::io_context io_;
  net::executor_work_guard<net::io_context::executor_type> work_{io_.get_executor()};
  Acceptor acceptor_{net::make_strand(io_)};
  ConnectionTimer pause_{acceptor_.get_executor()};
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
