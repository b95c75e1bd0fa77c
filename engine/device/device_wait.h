// Measures how long a device waits for an exchange, and adds it to an ExchangeMeter.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>

#include "engine/api/exchange_meter.h"
#include "engine/device/device_moment.h"

namespace wan {

// Construct it where the wait begins, on the thread that queues the device's work, and call End
// there once the work that ends the wait is queued. Without a meter it does nothing; without End it
// counts nothing.
class DeviceWait {
 public:
  DeviceWait(at::Device device, std::shared_ptr<ExchangeMeter> meter)
      : device_(device), meter_(std::move(meter)) {
    if (meter_ != nullptr) begin_.emplace(device);
  }

  void End() {
    if (!begin_.has_value()) return;
    // Shared, because a std::function must be copyable and an event is not.
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
