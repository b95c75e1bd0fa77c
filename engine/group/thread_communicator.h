// Communicators between threads of one process, each with a device of the same host.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/group/communicator.h"

namespace wan {

// Makes one rank per entry of `devices`, which must not be empty and must be all CPUs or all GPUs.
// Ranks may share a device. Each rank's thread must queue its work on its device's default stream.
//
// Between GPUs, each receiver queues peer copies; no collective kernels are used. No kernel waits
// for a peer, so nothing hangs on the device if a rank stops queueing. docs/operate/scaling.md
// compares this with NCCL. Between GPUs without peer access the driver copies through host memory.
//
// Call it on one thread at a time. Throws what LibTorch throws if a GPU does not respond.
std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices);

}  // namespace wan
