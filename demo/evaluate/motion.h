// Which of the nine motions a track is. For the detector.
#pragma once

#include <string_view>
#include <vector>

namespace wan::demo {

// One object in one frame.
struct TrackPoint {
  double time = 0;  // 0 at the first frame, 1 at the last
  double x = 0;     // centre in pixels, y down
  double y = 0;
  double radius = 0;  // of a circle of its area, pixels
  double angle = 0;   // radians, known up to whole periods
};

// A name of Vocabulary::motions, or "still". `period`: a turn by this many radians does not change
// the object's looks; above 0. Points are in order of time.
std::string_view MotionOf(const std::vector<TrackPoint>& track, double period);

}  // namespace wan::demo
