// The number of the process's file descriptors, and their limit.
#pragma once

#include <cstdint>

namespace wan::server {

struct DescriptorUse {
  int64_t open = 0;   // 0: unknown
  int64_t limit = 0;  // 0: unknown
};

// Raises the soft limit (RLIMIT_NOFILE) to the hard one if the system allows it. Call it once at
// the start of the process, before anything listens.
void RaiseDescriptorLimit();

// Reads /proc. Any thread may call it.
DescriptorUse DescriptorsNow();

// Returns the most gRPC connections for this limit of descriptors: a quarter of it, and at most
// 16,384. Each connection needs three descriptors, its own and two of the relay; the rest is for
// files, databases and devices.
int ConnectionsFor(int64_t descriptor_limit);

}  // namespace wan::server
