// Names of the group's shared memory, and the removal of what killed groups left: the name is
// unlinked within moments of its making, so only a kill in between leaves one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace levin {

// "/levin-PID-EPOCH"
std::string SegmentName(int64_t pid, uint64_t epoch);

// Removes segments of this user whose process is gone. Returns how many.
int RemoveLeftoverSegments(const std::filesystem::path& folder = "/dev/shm");

}  // namespace levin
