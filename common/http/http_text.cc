#include "common/http/http_text.h"

#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <ctime>

namespace levin {
namespace {

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const char x = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] + 32) : a[i];
    if (x != b[i]) return false;
  }
  return true;
}

// Written by the server alone: what a handler says about them would contradict the framing.
bool IsOurs(std::string_view name) {
  return EqualsIgnoreCase(name, "content-length") || EqualsIgnoreCase(name, "transfer-encoding") ||
         EqualsIgnoreCase(name, "connection") || EqualsIgnoreCase(name, "date");
}

void AppendClean(std::string_view text, std::string& out) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(byte < 0x20 || byte == 0x7f ? ' ' : c);
  }
}

void AppendHeader(std::string_view name, std::string_view value, std::string& out) {
  AppendClean(name, out);
  out += ": ";
  AppendClean(value, out);
  out += "\r\n";
}

void AppendDate(std::string& out) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                kDays[static_cast<size_t>(utc.tm_wday)], utc.tm_mday,
                kMonths[static_cast<size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  out += text.data();
}

std::string_view ErrorType(int status) {
  if (status == 408 || status == 504) return "timeout_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string FormatHead(const ReplyHead& head, const HttpHeaders& headers) {
  std::string out;
  out.reserve(256);
  out += "HTTP/1.1 ";
  out += std::to_string(head.status);
  out += ' ';
  out += ReasonPhrase(head.status);
  out += "\r\n";
  AppendDate(out);
  for (const auto& [name, value] : headers) {
    if (!IsOurs(name)) AppendHeader(name, value, out);
  }
  if (head.framing == BodyFraming::kLength) {
    AppendHeader("content-length", std::to_string(head.body_bytes), out);
  } else if (head.framing == BodyFraming::kChunked) {
    AppendHeader("transfer-encoding", "chunked", out);
  }
  if (!head.keep_alive) {
    AppendHeader("connection", "close", out);
  } else if (head.http_1_0) {
    AppendHeader("connection", "keep-alive", out);
  }
  out += "\r\n";
  return out;
}

std::string ChunkHead(size_t bytes) {
  std::array<char, 20> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), bytes, 16).ptr;
  return std::string(text.data(), end) + "\r\n";
}

bool AsksToClose(const HttpHeaders& headers) {
  for (const auto& [name, value] : headers) {
    if (EqualsIgnoreCase(name, "connection") && EqualsIgnoreCase(value, "close")) return true;
  }
  return false;
}

HttpResponse ErrorReply(int status, std::string_view code, std::string_view message) {
  const boost::json::value body = {
      {"error",
       {{"message", message}, {"type", ErrorType(status)}, {"param", nullptr}, {"code", code}}}};
  return {status, {{"content-type", "application/json"}}, boost::json::serialize(body)};
}

std::pair<std::string, std::string> SplitTarget(std::string_view target) {
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    if (scheme != std::string_view::npos) {
      const size_t path = target.find_first_of("/?", scheme + 3);
      target = path == std::string_view::npos ? "/" : target.substr(path);
    }
  }
  const size_t mark = target.find('?');
  std::string path(target.substr(0, mark));
  if (path.empty()) path = "/";
  std::string query(mark == std::string_view::npos ? "" : target.substr(mark + 1));
  return {std::move(path), std::move(query)};
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace levin
