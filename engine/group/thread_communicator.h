// A group whose ranks are threads of one process, each with a device of one host.
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
// Data crosses between GPUs in peer copies, which each receiver queues for itself, and not in
// collective kernels: no kernel ever waits for a peer on the device, so a rank that stops queueing
// leaves nothing there that hangs. docs/operate/scaling.md compares this with NCCL. For pairs of
// GPUs without peer access the driver copies through host memory.
//
// Call it on one thread at a time. Throws what LibTorch throws if a GPU does not answer.
std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices);

}  // namespace wan
