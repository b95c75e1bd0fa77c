// A moment in a device's work, to measure the time between two of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace wan {

// On a GPU, a mark after the work that is queued on the calling thread's stream at construction; it
// takes some microseconds and does not wait. On a CPU, the time of construction.
class DeviceMoment {
 public:
  explicit DeviceMoment(at::Device device);

  // Returns the seconds between the two. On a GPU both must have passed: the caller has waited for
  // the device since.
  double SecondsUntil(const DeviceMoment& later) const;

  // Whether the device has reached the moment. Does not wait. Throws what LibTorch throws if the
  // device is lost.
  bool HasPassed() const { return !event_.has_value() || event_->query(); }

 private:
  std::optional<c10::Event> event_;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace wan
