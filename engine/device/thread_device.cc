#include "engine/device/thread_device.h"

#include <ATen/DeviceAccelerator.h>

namespace wan {

void UseDeviceInThread(c10::Device device) {
  if (device.is_cuda() && device.has_index()) at::accelerator::setDeviceIndex(device.index());
}

}  // namespace wan
