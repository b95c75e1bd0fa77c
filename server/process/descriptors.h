// The process' file descriptors: their limit and number.
#pragma once

#include <cstdint>

namespace wan::server {

struct DescriptorUse {
  int64_t open = 0;   // 0: not known
  int64_t limit = 0;  // 0: not known
};

// Raises the soft limit (RLIMIT_NOFILE) to the hard one, as far as the system lets it. Called once,
// at the start of the process, before anything listens.
void RaiseDescriptorLimit();

// Any thread. Reads /proc.
DescriptorUse DescriptorsNow();

// Returns the most gRPC connections for a process with this limit of descriptors: a quarter of it,
// and never more than 16,384. Each takes three descriptors, its own and two of the relay, so that
// files, databases and devices have the rest.
int ConnectionsFor(int64_t descriptor_limit);

}  // namespace wan::server
