// A point in a device's work; two of them measure time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace wan {

// On a GPU, a mark after the work that the calling thread's stream has at construction. It costs
// some microseconds and does not wait. On a CPU, the time of construction.
class DeviceMoment {
 public:
  explicit DeviceMoment(at::Device device);

  // Returns the seconds between the two moments. On a GPU both must have passed, so wait for the
  // device first.
  double SecondsUntil(const DeviceMoment& later) const;

  // Whether the device has reached the moment. Does not wait. Throws what LibTorch throws if the
  // device is lost.
  bool HasPassed() const { return !event_.has_value() || event_->query(); }

 private:
  std::optional<c10::Event> event_;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace wan
