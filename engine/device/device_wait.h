// A time in which a device waits for an exchange, for the meter of its exchanges.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>

#include "engine/api/exchange_meter.h"
#include "engine/device/device_moment.h"

namespace wan {

// Construct it where the wait begins, on the thread that queues the device's work, and call End
// there when the work that ends the wait is queued. Does nothing without a meter, and counts
// nothing without End.
class DeviceWait {
 public:
  DeviceWait(at::Device device, std::shared_ptr<ExchangeMeter> meter)
      : device_(device), meter_(std::move(meter)) {
    if (meter_ != nullptr) begin_.emplace(device);
  }

  void End() {
    if (!begin_.has_value()) return;
    // In a shared pointer, because an event cannot be copied and a std::function can.
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
