#include "common/rpc/grpc_status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error_table.h"

namespace levin {
namespace {

// The five messages of google/rpc are not packaged for C++ here; these are their fields, written
// and read in protobuf's wire format: tag, then a varint or a length and bytes.
constexpr char kErrorInfo[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kBadRequest[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr char kRequestInfo[] = "type.googleapis.com/google.rpc.RequestInfo";
constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutNumber(std::string& out, int field, uint64_t value) {
  PutVarint(out, static_cast<uint64_t>(field) << 3);
  PutVarint(out, value);
}

void PutBytes(std::string& out, int field, std::string_view bytes) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  PutVarint(out, bytes.size());
  out.append(bytes);
}

void PutAny(std::string& out, std::string_view type, std::string_view message) {
  std::string any;
  PutBytes(any, 1, type);
  PutBytes(any, 2, message);
  PutBytes(out, 3, any);
}

struct Field {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

// Takes the first field off `in`; false at the end and at anything malformed.
class FieldReader {
 public:
  explicit FieldReader(std::string_view in) : in_(in) {}

  bool Next(Field& field) {
    uint64_t tag = 0;
    if (in_.empty() || !Varint(tag)) return false;
    field = {.number = tag >> 3, .value = 0, .bytes = {}};
    switch (tag & 7) {
      case 0:
        return Varint(field.value);
      case 1:
        return Take(8, field.bytes);
      case 2: {
        uint64_t size = 0;
        return Varint(size) && Take(size, field.bytes);
      }
      case 5:
        return Take(4, field.bytes);
      default:
        return false;
    }
  }

 private:
  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !in_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(in_.front());
      in_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Take(uint64_t size, std::string_view& out) {
    if (size > in_.size()) return false;
    out = in_.substr(0, size);
    in_.remove_prefix(size);
    return true;
  }

  std::string_view in_;
};

std::string_view BytesField(std::string_view message, uint64_t number) {
  FieldReader reader(message);
  for (Field field; reader.Next(field);) {
    if (field.number == number) return field.bytes;
  }
  return {};
}

std::string Details(const Status& status) {
  std::string out;
  PutNumber(out, 1, static_cast<uint64_t>(status.code()));
  PutBytes(out, 2, status.message());
  if (!status.reason().empty()) {
    std::string info;
    PutBytes(info, 1, status.reason());
    PutBytes(info, 2, "levin");
    PutAny(out, kErrorInfo, info);
  }
  if (!status.param().empty()) {
    std::string violation, request;
    PutBytes(violation, 1, status.param());
    PutBytes(violation, 2, status.message());
    PutBytes(request, 1, violation);
    PutAny(out, kBadRequest, request);
  }
  if (status.retry_after_ms() > 0) {
    std::string duration, info;
    PutNumber(duration, 1, static_cast<uint64_t>(status.retry_after_ms() / 1000));
    PutNumber(duration, 2, static_cast<uint64_t>(status.retry_after_ms() % 1000 * 1'000'000));
    PutBytes(info, 1, duration);
    PutAny(out, kRetryInfo, info);
  }
  return out;
}

// The first of the table's reasons with that code; clients always get one.
std::string_view ReasonOf(Code code) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.code == code && !row.internal) return row.reason;
  }
  return "INTERNAL";
}

int64_t DurationMs(std::string_view duration) {
  int64_t ms = 0;
  FieldReader reader(duration);
  for (Field field; reader.Next(field);) {
    if (field.number == 1 && field.value < uint64_t{1} << 40)
      ms += static_cast<int64_t>(field.value) * 1000;
    if (field.number == 2 && field.value < 1'000'000'000)
      ms += static_cast<int64_t>(field.value / 1'000'000);
  }
  return ms;
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (status.reason().empty() && status.param().empty() && status.retry_after_ms() == 0) {
    return {code, status.message()};
  }
  return {code, status.message(), Details(status)};
}

grpc::Status ToGrpc(const Status& status, std::string_view request_id) {
  if (status.ok()) return grpc::Status::OK;
  Status full = status;
  if (full.reason().empty()) full = std::move(full).WithReason(std::string(ReasonOf(full.code())));
  std::string details = Details(full), info;
  PutBytes(info, 1, request_id);
  PutAny(details, kRequestInfo, info);
  return {static_cast<grpc::StatusCode>(full.code()), full.message(), details};
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return Status::Ok();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(Code::kUnauthenticated);
  std::string reason, param;
  int64_t retry_after_ms = 0;
  const std::string details = status.error_details();
  FieldReader reader(details);
  for (Field field; reader.Next(field);) {
    if (field.number != 3) continue;
    const std::string_view type = BytesField(field.bytes, 1);
    const std::string_view message = BytesField(field.bytes, 2);
    if (type == kErrorInfo) reason = BytesField(message, 1);
    if (type == kBadRequest) param = BytesField(BytesField(message, 1), 1);
    if (type == kRetryInfo) retry_after_ms = DurationMs(BytesField(message, 1));
  }
  return Status(known ? static_cast<Code>(code) : Code::kUnknown, status.error_message())
      .WithReason(std::move(reason))
      .WithParam(std::move(param))
      .WithRetryAfterMs(retry_after_ms);
}

}  // namespace levin
