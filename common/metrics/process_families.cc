#include "common/metrics/process_families.h"

#include "common/base/version.h"

namespace levin {

ProcessFamilies::ProcessFamilies(MetricRegistry& registry)
    : startup_progress(registry, "levin_startup_progress_ratio"),
      startup_phase(registry, "levin_startup_phase"),
      draining(registry, "levin_draining"),
      log_messages(registry, "levin_log_messages_total") {
  registry.AddInfo("levin_build_info", "Version of this process.", {{"version", kVersion}});
  SetPhase(StartupPhase::kStarting);
}

void ProcessFamilies::SetPhase(StartupPhase phase) const {
  for (size_t i = 0; i < kStartupLabel.values.size(); ++i) {
    const auto each = static_cast<StartupPhase>(i);
    startup_phase(each).Set(each == phase ? 1 : 0);
  }
}

}  // namespace levin
