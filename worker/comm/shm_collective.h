// The collective between processes of one host, through one shared-memory segment (dependencies.md
// 4): a slot per rank, double-buffered so that a sum needs no barrier behind it. Up to 32 KB each
// rank sums all slots itself; above, each sums its share and all copy the shared result. Both add
// in rank order: the size does not change the bits.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "worker/comm/collective.h"

namespace levin {

struct ShmOptions {
  std::chrono::milliseconds time_limit = std::chrono::seconds(20);  // of each wait for a peer
  int64_t slot_bytes = int64_t{1} << 20;  // longer messages go in pieces; a multiple of 64
  int cores = 0;  // that the ranks share; 0: those this process may use. Decides how to wait
};

class ShmCollective : public Collective {
 public:
  // The leader (rank 0) makes the segment; its name ("/levin-...") must be new on this host.
  static Result<std::unique_ptr<ShmCollective>> Create(const std::string& name, int ranks,
                                                       const ShmOptions& options);
  // Another rank maps it, after Create has returned: the leader tells the name. kNotFound when
  // there is none, kFailedPrecondition when it was made for another number of ranks or slot size.
  static Result<std::unique_ptr<ShmCollective>> Open(const std::string& name, int rank, int ranks,
                                                     const ShmOptions& options);

  // First call of every rank: returns when all have mapped the segment; the leader then unlinks
  // its name, so that nothing outlives the processes. Waits at most `time_limit`.
  virtual Status Rendezvous(std::chrono::milliseconds time_limit) = 0;
};

}  // namespace levin
