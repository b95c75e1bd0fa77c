// Selects a thread's GPU.
#pragma once

#include <c10/core/Device.h>

namespace wan {

// Makes `device` the calling thread's GPU; does nothing for a CPU. Call it on every thread before
// its first CUDA call. Otherwise the thread uses GPU 0, where CUDA then creates a context of 518
// MiB, even if the thread only restores its previous device. Throws c10::Error if the device does
// not respond.
void UseDeviceInThread(c10::Device device);

}  // namespace wan
