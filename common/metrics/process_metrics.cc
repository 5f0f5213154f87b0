#include "common/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace levin {
namespace {

struct ProcessFacts {
  double cpu_seconds = 0;
  double virtual_bytes = 0;
  double resident_bytes = 0;
  double start_time_seconds = 0;
  double open_fds = 0;
  double max_fds = 0;
};

double BootTimeSeconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  while (stat >> word) {
    double seconds = 0;
    if (word == "btime" && stat >> seconds) return seconds;
  }
  return 0;
}

// proc(5): the fields behind the command name, which may hold spaces but ends at the last ')'.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

ProcessFacts ReadFacts() {
  ProcessFacts facts;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::vector<std::string> fields = StatFields();
  if (fields.size() > 21) {  // index = field number of proc(5) - 3
    facts.cpu_seconds = (std::stod(fields[11]) + std::stod(fields[12])) / ticks;
    facts.start_time_seconds = BootTimeSeconds() + std::stod(fields[19]) / ticks;
    facts.virtual_bytes = std::stod(fields[20]);
    facts.resident_bytes = std::stod(fields[21]) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code ignored;
  const std::filesystem::directory_iterator fds("/proc/self/fd", ignored);
  facts.open_fds = static_cast<double>(std::distance(begin(fds), end(fds)));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = static_cast<double>(limit.rlim_cur);
  return facts;
}

}  // namespace

void AppendProcessFamilies(const std::map<std::string, std::string>& constant_labels,
                           std::vector<prometheus::MetricFamily>& families) {
  const ProcessFacts facts = ReadFacts();
  const auto add = [&](const char* name, const char* help, prometheus::MetricType type,
                       double value) {
    prometheus::ClientMetric metric;
    for (const auto& [key, text] : constant_labels) metric.label.push_back({key, text});
    metric.counter.value = metric.gauge.value = value;
    families.push_back({name, help, type, {std::move(metric)}});
  };
  using Type = prometheus::MetricType;
  add("process_cpu_seconds_total", "User and system time spent.", Type::Counter, facts.cpu_seconds);
  add("process_virtual_memory_bytes", "Virtual memory.", Type::Gauge, facts.virtual_bytes);
  add("process_resident_memory_bytes", "Resident memory.", Type::Gauge, facts.resident_bytes);
  add("process_start_time_seconds", "Start time since the Unix epoch.", Type::Gauge,
      facts.start_time_seconds);
  add("process_open_fds", "Open file descriptors.", Type::Gauge, facts.open_fds);
  add("process_max_fds", "Limit of open file descriptors.", Type::Gauge, facts.max_fds);
}

}  // namespace levin
