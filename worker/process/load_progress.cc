#include "worker/process/load_progress.h"

namespace levin {
namespace {

constexpr int64_t kStepPercent = 5;
constexpr Duration kStepTime = std::chrono::seconds(1);

std::string Megabytes(int64_t bytes) { return std::to_string((bytes + 500'000) / 1'000'000); }

}  // namespace

std::optional<std::string> LoadProgress::Line(int64_t bytes_done, int64_t bytes_total) {
  const int64_t percent = bytes_total > 0 ? bytes_done * 100 / bytes_total : 100;
  const TimePoint now = clock_.Now();
  const bool first = shown_percent_ < 0;
  const bool last = percent == 100 && shown_percent_ < 100;
  const bool due = percent >= shown_percent_ + kStepPercent ||
                   (percent > shown_percent_ && now - shown_at_ >= kStepTime);
  if (!first && !last && !due) return std::nullopt;
  shown_percent_ = percent;
  shown_at_ = now;
  return "levin-worker: rank " + std::to_string(rank_) + " loading " + std::to_string(percent) +
         "% (" + Megabytes(bytes_done) + " of " + Megabytes(bytes_total) + " MB)";
}

}  // namespace levin
