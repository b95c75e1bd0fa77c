#include "engine/device/device_moment.h"

#include <ATen/DeviceAccelerator.h>

namespace wan {

DeviceMoment::DeviceMoment(at::Device device) {
  if (device.is_cpu()) {
    time_ = std::chrono::steady_clock::now();
    return;
  }
  event_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  event_->record(at::accelerator::getCurrentStream(device.index()));
}

double DeviceMoment::SecondsUntil(const DeviceMoment& later) const {
  if (event_.has_value()) return event_->elapsedTime(*later.event_) / 1000;
  return std::chrono::duration<double>(later.time_ - time_).count();
}

}  // namespace wan
