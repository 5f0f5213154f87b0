#include "common/metrics/metric_labels.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

namespace levin {
namespace {

// The index of `value`, or of the last entry, which is `other`.
size_t IndexOrLast(std::span<const std::string_view> values, std::string_view value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? values.size() - 1
                               : static_cast<size_t>(std::distance(values.begin(), found));
}

}  // namespace

HttpCode ToHttpCode(int status) {
  return static_cast<HttpCode>(IndexOrLast(kHttpCodeValues, std::to_string(status)));
}

FinishLabel ToFinishLabel(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return FinishLabel::kStop;
    case FinishReason::kLength:
      return FinishLabel::kLength;
    case FinishReason::kCancelled:
      return FinishLabel::kCancelled;
    case FinishReason::kDeadline:
      return FinishLabel::kDeadline;
    case FinishReason::kError:
    case FinishReason::kNone:
      break;
  }
  return FinishLabel::kError;
}

RejectReason ToRejectReason(std::string_view status_reason) {
  std::string lower(status_reason);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return static_cast<RejectReason>(IndexOrLast(kRejectValues, lower));
}

Method ToMethod(std::string_view method) {
  return static_cast<Method>(IndexOrLast(kMethodValues, method));
}

StatusGroup ToStatusGroup(int status) {
  switch (status / 100) {
    case 2:
      return StatusGroup::k2xx;
    case 4:
      return StatusGroup::k4xx;
    case 5:
      return StatusGroup::k5xx;
    default:
      return StatusGroup::kOther;
  }
}

}  // namespace levin
