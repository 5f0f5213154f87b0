// What the world can do wrong, as a value. Codes are gRPC's; `reason` is the stable UPPER_SNAKE
// name of the error table (protocol.md 10), `param` the dotted path of the field at fault.
// Our own mistakes are CHECKs (common/base/check.h), never a Status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace levin {

enum class Code : uint8_t {  // values equal gRPC's
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

class [[nodiscard]] Status final {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Status(Code code, std::string reason, std::string message)
      : code_(code), message_(std::move(message)), reason_(std::move(reason)) {}

  static Status Ok() { return {}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& reason() const { return reason_; }
  const std::string& param() const { return param_; }
  int64_t retry_after_ms() const { return retry_after_ms_; }  // 0: none

  Status&& WithReason(std::string reason) && {
    reason_ = std::move(reason);
    return std::move(*this);
  }
  Status&& WithParam(std::string param) && {
    param_ = std::move(param);
    return std::move(*this);
  }
  Status&& WithRetryAfterMs(int64_t ms) && {
    retry_after_ms_ = ms;
    return std::move(*this);
  }
  // "what happened" -> "prefix: what happened"
  Status&& Annotate(std::string_view prefix) && {
    message_ = std::string(prefix) + ": " + message_;
    return std::move(*this);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::string reason_;
  std::string param_;
  int64_t retry_after_ms_ = 0;
};

inline Status InvalidArgument(std::string message) {
  return {Code::kInvalidArgument, "INVALID_FIELD", std::move(message)};
}
inline Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
inline Status FailedPrecondition(std::string message) {
  return {Code::kFailedPrecondition, std::move(message)};
}
inline Status Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
inline Status Internal(std::string message) {
  return {Code::kInternal, "INTERNAL", std::move(message)};
}
inline Status Unimplemented(std::string message) {
  return {Code::kUnimplemented, "UNSUPPORTED", std::move(message)};
}
inline Status DataLoss(std::string message) { return {Code::kDataLoss, std::move(message)}; }
inline Status ResourceExhausted(std::string message) {
  return {Code::kResourceExhausted, std::move(message)};
}

template <typename T>
using Result = tl::expected<T, Status>;

// return Error(InvalidArgument("...")) from a function that returns Result<T>.
inline tl::unexpected<Status> Error(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

}  // namespace levin

#define LEVIN_CONCAT_(a, b) a##b
#define LEVIN_CONCAT(a, b) LEVIN_CONCAT_(a, b)

// In a function that returns Status.
#define RETURN_IF_ERROR(expr)                                            \
  do {                                                                   \
    if (::levin::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// In a function that returns Result<T>.
#define RETURN_ERROR_IF(expr)                            \
  do {                                                   \
    if (::levin::Status status_ = (expr); !status_.ok()) \
      return ::levin::Error(std::move(status_));         \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()): F returns Result<T>; the enclosing function returns Result<U>.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(LEVIN_CONCAT(result_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr)                  \
  auto tmp = (expr);                                       \
  if (!tmp) return ::levin::Error(std::move(tmp).error()); \
  lhs = *std::move(tmp)

// The same in a function that returns Status.
#define ASSIGN_OR_RETURN_STATUS(lhs, expr) \
  ASSIGN_OR_RETURN_STATUS_(LEVIN_CONCAT(result_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_STATUS_(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp) return std::move(tmp).error();       \
  lhs = *std::move(tmp)
