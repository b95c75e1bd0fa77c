// Selects the GPU of a thread.
#pragma once

#include <c10/core/Device.h>

namespace wan {

// Makes `device` the calling thread's GPU; does nothing for a CPU. Call UseDeviceInThread on every
// thread, before the thread's first CUDA call. A thread without this call uses GPU 0, where CUDA
// then creates a context of 518 MiB. Even a thread that only switches back to its previous device
// creates that context. Throws c10::Error if the device does not respond.
void UseDeviceInThread(c10::Device device);

}  // namespace wan
