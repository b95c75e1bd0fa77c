// Collects the points of a timeline, of which there are never more than a fixed number. The object
// has no thread and reads no clock.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/device_monitor.h"

namespace wan {

// Makes a point from the samples of the CPU and the devices. The point has the figures of the last
// sample, the computing device, and the CPU and process figures of the first sample. The point
// lacks names, sizes and sums, because a timeline does not repeat them.
DeviceSample WithoutConstants(const std::vector<DeviceSample>& samples);

// Not thread-safe.
class TimelinePoints {
 public:
  // Returns the least duration of the next point, at first 250 ms. When there are
  // DeviceTimeline::kMostPoints points, Add merges each pair of neighbours, and the duration
  // doubles.
  absl::Duration interval() const { return interval_; }
  void Add(TimelinePoint point);
  const std::vector<TimelinePoint>& points() const { return points_; }

 private:
  absl::Duration interval_ = absl::Milliseconds(250);
  std::vector<TimelinePoint> points_;
};

}  // namespace wan
