// A moment in a device's work. The time between two moments can be measured.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace wan {

// On a GPU the moment is a mark after all work that the calling thread's stream has when the object
// is constructed. The mark costs some microseconds, and nothing waits for it. On a CPU the moment
// is the time of construction.
class DeviceMoment {
 public:
  explicit DeviceMoment(at::Device device);

  // Returns the seconds from this moment to the other moment. On a GPU both moments must have
  // passed, so the caller must wait for the device first.
  double SecondsUntil(const DeviceMoment& later) const;

  // Returns whether the device has reached this moment. The call does not wait. If the device is
  // lost, exceptions of LibTorch pass through.
  bool HasPassed() const { return !event_.has_value() || event_->query(); }

 private:
  std::optional<c10::Event> event_;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace wan
