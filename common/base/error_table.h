// The error table (protocol.md 10, api.md 12.4): every stable reason with its code, its HTTP status
// and who may try again. Knows neither gRPC nor HTTP; a test enumerates it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace levin {

enum class RetryAdvice : uint8_t { kNever = 1, kSame = 2, kElsewhere = 3, kLater = 4 };

struct ErrorRow {
  std::string_view reason;  // UPPER_SNAKE
  Code code = Code::kUnknown;
  int http = 500;
  RetryAdvice retry = RetryAdvice::kNever;
  bool internal = false;  // between router and group only, never shown to a client
};

inline constexpr std::array kErrorTable = {
    ErrorRow{"INVALID_FIELD", Code::kInvalidArgument, 400},
    ErrorRow{"CONTEXT_LENGTH_EXCEEDED", Code::kInvalidArgument, 400},
    ErrorRow{"CACHE_NEVER_FITS", Code::kInvalidArgument, 400},
    ErrorRow{"QUEUE_FULL", Code::kResourceExhausted, 429, RetryAdvice::kLater},
    ErrorRow{"RATE_LIMITED", Code::kResourceExhausted, 429, RetryAdvice::kLater},
    ErrorRow{"DEADLINE_EXCEEDED", Code::kDeadlineExceeded, 504},
    ErrorRow{"CANCELLED", Code::kCancelled, 499},
    ErrorRow{"MODEL_NOT_FOUND", Code::kNotFound, 404},
    ErrorRow{"MODEL_LOADING", Code::kUnavailable, 503, RetryAdvice::kElsewhere},
    ErrorRow{"DRAINING", Code::kUnavailable, 503, RetryAdvice::kElsewhere},
    ErrorRow{"NO_GROUP", Code::kUnavailable, 503, RetryAdvice::kElsewhere},
    ErrorRow{"QUEUE_TIMEOUT", Code::kUnavailable, 503, RetryAdvice::kLater},
    ErrorRow{"EPOCH_ENDED", Code::kUnavailable, 503, RetryAdvice::kElsewhere},
    ErrorRow{"ENGINE_RESTARTED", Code::kAborted, 500},  // after tokens: inside the stream
    ErrorRow{"NUMERIC_FAULT", Code::kInternal, 500},
    ErrorRow{"INTERNAL", Code::kInternal, 500},
    ErrorRow{"GENERATION_EXISTS", Code::kAlreadyExists, 409},
    ErrorRow{"UNSUPPORTED", Code::kUnimplemented, 501},
    ErrorRow{"UNAUTHENTICATED", Code::kUnauthenticated, 401},
    ErrorRow{"PERMISSION_DENIED", Code::kPermissionDenied, 403},
    ErrorRow{"STALE_ATTEMPT", Code::kAborted, 500, RetryAdvice::kNever, true},
    ErrorRow{"EPOCH_MISMATCH", Code::kFailedPrecondition, 503, RetryAdvice::kElsewhere, true},
    ErrorRow{"PROTOCOL_VERSION", Code::kFailedPrecondition, 503, RetryAdvice::kElsewhere, true},
    ErrorRow{"TOKENIZER_MISMATCH", Code::kFailedPrecondition, 503, RetryAdvice::kElsewhere, true},
    ErrorRow{"UNKNOWN_GENERATION", Code::kNotFound, 500, RetryAdvice::kSame, true},
    ErrorRow{"PROMPT_NOT_FOUND", Code::kNotFound, 500, RetryAdvice::kSame, true},
    ErrorRow{"PROMPT_HASH_MISMATCH", Code::kDataLoss, 500, RetryAdvice::kSame, true},
    ErrorRow{"SLOW_ROUTER", Code::kResourceExhausted, 503, RetryAdvice::kLater, true},
    ErrorRow{"SESSION_ENDED", Code::kFailedPrecondition, 503, RetryAdvice::kSame, true},
};

constexpr const ErrorRow* FindError(std::string_view reason) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.reason == reason) return &row;
  }
  return nullptr;
}

// Where no reason is given: the code's own twin.
constexpr int HttpOf(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kCancelled:
      return 499;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
      return 409;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kUnknown:
    case Code::kAborted:
    case Code::kInternal:
    case Code::kDataLoss:
      return 500;
  }
  return 500;
}

inline int HttpOf(const Status& status) {
  const ErrorRow* row = FindError(status.reason());
  return row != nullptr && row->code == status.code() ? row->http : HttpOf(status.code());
}

inline RetryAdvice RetryOf(const Status& status) {
  const ErrorRow* row = FindError(status.reason());
  if (row != nullptr && row->code == status.code()) return row->retry;
  return status.code() == Code::kUnavailable ? RetryAdvice::kElsewhere : RetryAdvice::kNever;
}

}  // namespace levin
