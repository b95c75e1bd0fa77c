// Which GPU a thread's calls to CUDA go to.
#pragma once

#include <c10/core/Device.h>

namespace wan {

// Makes `device` the calling thread's GPU from here on; nothing happens for a CPU. Every thread
// calls it before its first call to CUDA: one that does not works on GPU 0, where CUDA makes a
// context of 518 MiB even if only the device that was current before has to be restored. Throws
// c10::Error if the device does not answer.
void UseDeviceInThread(c10::Device device);

}  // namespace wan
