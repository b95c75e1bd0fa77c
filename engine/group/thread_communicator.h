// Communicators between threads of one process; each thread has a device of this host.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/group/communicator.h"

namespace wan {

// Makes one rank for each entry of `devices`, which must not be empty. The devices must be all CPUs
// or all GPUs; several ranks may share a device. The thread of each rank must queue its work on the
// default stream of its device.
//
// Between GPUs, the receiver queues peer copies; there are no collective kernels. No kernel waits
// for a peer, so nothing hangs on a device if a rank stops queuing work. docs/operate/scaling.md
// compares this design with NCCL. If two GPUs have no access to each other's memory, the driver
// copies through host memory.
//
// Only one thread at a time may call the function. If a GPU does not respond, exceptions of
// LibTorch pass through.
std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices);

}  // namespace wan
