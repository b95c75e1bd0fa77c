// The points of a timeline, whose number is bounded. No thread, no clock.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/device_monitor.h"

namespace wan {

// Returns a point: the last sample (the computing device's) with the figures of the CPU and the
// process from the first, without names, sizes and sums, which a timeline does not repeat.
DeviceSample WithoutConstants(const std::vector<DeviceSample>& samples);

// Not thread-safe.
class TimelinePoints {
 public:
  // Least length of the next point: 250 ms at first. It doubles when there are
  // DeviceTimeline::kMostPoints, of which each two become one then.
  absl::Duration interval() const { return interval_; }
  void Add(TimelinePoint point);
  const std::vector<TimelinePoint>& points() const { return points_; }

 private:
  absl::Duration interval_ = absl::Milliseconds(250);
  std::vector<TimelinePoint> points_;
};

}  // namespace wan
