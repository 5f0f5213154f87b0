#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace levin::testing {
namespace {

int Connect(const char* host, uint16_t port) {
  sockaddr_storage address{};
  socklen_t bytes = 0;
  if (std::string_view(host).find(':') != std::string_view::npos) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    ::inet_pton(AF_INET6, host, &v6->sin6_addr);
    bytes = sizeof(*v6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    ::inet_pton(AF_INET, host, &v4->sin_addr);
    bytes = sizeof(*v4);
  }
  const int fd = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

HttpClient::HttpClient(uint16_t port, const char* host) : fd_(Connect(host, port)) {}

HttpClient::~HttpClient() { Close(); }

bool HttpClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

HttpReply HttpClient::Get(std::string_view path) {
  Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return ReadReply();
}

HttpReply HttpClient::Post(std::string_view path, std::string_view body) {
  Send("POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  return ReadReply();
}

HttpReply HttpClient::ReadHead() {
  HttpReply reply;
  const std::string line = ReadLine();
  if (line.size() >= 12 && line.starts_with("HTTP/1.1 ")) reply.status = std::atoi(&line[9]);
  for (std::string header = ReadLine(); !header.empty(); header = ReadLine()) {
    const size_t colon = header.find(": ");
    if (colon == std::string::npos) break;
    reply.headers[header.substr(0, colon)] = header.substr(colon + 2);
  }
  return reply;
}

HttpReply HttpClient::ReadReply(bool head_only) {
  HttpReply reply = ReadHead();
  if (head_only || reply.status == 204 || reply.status == 100) return reply;
  if (reply.headers.contains("content-length")) {
    reply.body = ReadExactly(static_cast<size_t>(std::stoull(reply.headers["content-length"])));
  } else if (reply.headers.contains("transfer-encoding")) {
    for (std::string chunk = ReadChunk(); !chunk.empty(); chunk = ReadChunk()) {
      reply.body += chunk;
      if (chunk == "<cut>") break;
    }
  } else {
    while (Fill()) {
    }
    reply.body = std::exchange(buffer_, {});
  }
  return reply;
}

std::string HttpClient::ReadChunk() {
  const std::string size = ReadLine();
  if (size.empty()) return "<cut>";
  const size_t bytes = std::strtoul(size.c_str(), nullptr, 16);
  std::string chunk = ReadExactly(bytes);
  if (chunk.size() < bytes || ReadExactly(2) != "\r\n") return "<cut>";
  return chunk;
}

std::string HttpClient::ReadExactly(size_t n) {
  while (buffer_.size() < n && Fill()) {
  }
  std::string bytes = buffer_.substr(0, n);
  buffer_.erase(0, bytes.size());
  return bytes;
}

bool HttpClient::AtEnd() {
  if (!buffer_.empty()) return false;
  std::array<char, 1> byte;
  const ssize_t n = ::recv(fd_, byte.data(), byte.size(), 0);
  return n == 0 || (n < 0 && errno == ECONNRESET);
}

void HttpClient::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void HttpClient::CloseSending() { ::shutdown(fd_, SHUT_WR); }

void HttpClient::Reset() {
  linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

void HttpClient::ShrinkReceiveBuffer() {
  const int bytes = 4096;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

bool HttpClient::Fill() {
  std::array<char, 65536> bytes;
  const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (n <= 0) return false;
  buffer_.append(bytes.data(), static_cast<size_t>(n));
  return true;
}

std::string HttpClient::ReadLine() {
  size_t end = buffer_.find("\r\n");
  while (end == std::string::npos) {
    if (!Fill()) return {};
    end = buffer_.find("\r\n");
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

}  // namespace levin::testing
