// Counts the file descriptors of the process, and raises their limit.
#pragma once

#include <cstdint>

namespace wan::server {

struct DescriptorUse {
  int64_t open = 0;   // number of open descriptors; 0: unknown
  int64_t limit = 0;  // maximum number of descriptors that the process may open; 0: unknown
};

// If the system allows it, raises the soft limit (RLIMIT_NOFILE) to the hard limit. Call
// RaiseDescriptorLimit once when the process starts, before anything listens.
void RaiseDescriptorLimit();

// Reads the current figures from /proc. Any thread may call DescriptorsNow.
DescriptorUse DescriptorsNow();

// Returns how many gRPC connections this limit of descriptors allows: a quarter of it, and at most
// 16,384. Each connection needs three descriptors, its own and two of the relay; the others are for
// files, databases and devices.
int ConnectionsFor(int64_t descriptor_limit);

}  // namespace wan::server
