// The collective between threads of one process: tests, and a group of a single rank.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "worker/comm/collective.h"

namespace levin {

// One object per rank; they share a state that lives as long as the last of them. With one rank
// nothing is copied and nothing waits.
std::vector<std::unique_ptr<Collective>> MakeLocalCollectives(
    int ranks, std::chrono::milliseconds time_limit = std::chrono::seconds(20));

}  // namespace levin
