// The points of a timeline; their number is bounded. No threads, no clock. No thread, no clock.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/device_monitor.h"

namespace wan {

// Makes a point: the last sample (of the computing device) with CPU and process figures of the
// first one, without names, sizes and sums, which a timeline does not repeat.
DeviceSample WithoutConstants(const std::vector<DeviceSample>& samples);

// Not thread-safe.
class TimelinePoints {
 public:
  // Minimum length of the next point, at first 250 ms. At DeviceTimeline::kMostPoints points it
  // doubles, and every two points are merged.
  absl::Duration interval() const { return interval_; }
  void Add(TimelinePoint point);
  const std::vector<TimelinePoint>& points() const { return points_; }

 private:
  absl::Duration interval_ = absl::Milliseconds(250);
  std::vector<TimelinePoint> points_;
};

}  // namespace wan
