// A blocking HTTP client over a raw socket, for tests: it sends what it is told, byte for byte, and
// says exactly what came back. Every wait ends after ten seconds, as a failure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace levin::testing {

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpClient final {
 public:
  explicit HttpClient(uint16_t port, const char* host = "127.0.0.1");
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool Send(std::string_view bytes);  // false when the server does not take them

  // GET or POST on this connection and its whole reply.
  HttpReply Get(std::string_view path);
  HttpReply Post(std::string_view path, std::string_view body);

  HttpReply ReadReply(bool head_only = false);  // head and body (by length, chunks or until closed)
  HttpReply ReadHead();
  std::string ReadChunk();            // "" is the last one; "<cut>" when the connection ended
  std::string ReadExactly(size_t n);  // less when the connection ended
  bool AtEnd();                       // waits: true on FIN or RST without another byte

  void Close();         // FIN
  void CloseSending();  // FIN, but goes on reading
  void Reset();         // RST
  void ShrinkReceiveBuffer();

 private:
  bool Fill();  // false at the end
  std::string ReadLine();

  int fd_ = -1;
  std::string buffer_;
};

}  // namespace levin::testing
