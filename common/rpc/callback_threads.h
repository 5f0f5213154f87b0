// gRPC's callback threads, kept for the life of the process.
#pragma once

namespace levin {

// gRPC 1.51 stops these threads when their last channel or server goes, and doing so may touch
// freed memory ("ref_counted.h: assertion failed: prior > 0"), at the end of a program as well as
// between two tests. This makes one user that never goes. Any thread, any number of times;
// MakeChannel and StartServer call it.
void KeepCallbackThreads();

}  // namespace levin
