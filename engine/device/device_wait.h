// Measures how long a device waits for an exchange with other devices, and adds the time to an
// ExchangeMeter.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>

#include "engine/api/exchange_meter.h"
#include "engine/device/device_moment.h"

namespace wan {

// Construct a DeviceWait where the wait begins, on the thread that queues the device's work. Call
// End on that thread when the work that ends the wait is queued. If the meter is null, the object
// does nothing. If nobody calls End, the wait is not counted.
class DeviceWait {
 public:
  DeviceWait(at::Device device, std::shared_ptr<ExchangeMeter> meter)
      : device_(device), meter_(std::move(meter)) {
    if (meter_ != nullptr) begin_.emplace(device);
  }

  void End() {
    if (!begin_.has_value()) return;
    // The pointer is shared, because a std::function must be copyable and an event is not.
    const auto moments = std::make_shared<std::pair<DeviceMoment, DeviceMoment>>(
        *std::move(begin_), DeviceMoment(device_));
    begin_.reset();
    meter_->CountWait([moments]() -> std::optional<double> {
      if (!moments->second.HasPassed()) return std::nullopt;
      return moments->first.SecondsUntil(moments->second);
    });
  }

 private:
  const at::Device device_;
  const std::shared_ptr<ExchangeMeter> meter_;
  std::optional<DeviceMoment> begin_;
};

}  // namespace wan
