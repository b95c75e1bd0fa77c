// Says for the detector which of the nine motions a track shows.
#pragma once

#include <string_view>
#include <vector>

namespace wan::demo {

// The place of one object in one frame.
struct TrackPoint {
  double time = 0;  // 0 at the first frame, 1 at the last
  double x = 0;     // the centre in pixels; y grows downwards
  double y = 0;
  double radius = 0;  // radius in pixels of a circle of the object's area
  double angle = 0;   // in radians; known only up to whole periods
};

// Returns a name of Vocabulary::motions, or "still". A turn by `period` radians does not change how
// the object looks; `period` must be above 0. The points must be in the order of time.
std::string_view MotionOf(const std::vector<TrackPoint>& track, double period);

}  // namespace wan::demo
