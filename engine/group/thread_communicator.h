// A group whose ranks are threads of one process, each with one device of the host.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/group/communicator.h"

namespace wan {

// Returns the ends of one rank for each entry of `devices`, which must not be empty: all CPUs, or
// all GPUs. Several ranks may have the same device. Work of a rank is queued where LibTorch
// computes on its device for the rank's thread, which must be the device's default stream.
//
// Data moves between GPUs in peer copies that each receiver queues, not in collective kernels. No
// kernel waits for a peer on the device, so nothing hangs there if a rank stops queueing.
// docs/operate/scaling.md compares this with NCCL. For pairs of GPUs without peer access the driver
// copies through host memory.
//
// Call it on one thread at a time. Throws what LibTorch throws if a GPU does not answer.
std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices);

}  // namespace wan
