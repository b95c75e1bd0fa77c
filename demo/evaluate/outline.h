// Says for the detector how well the outlines of an object are those of an ideal shape.
#pragma once

#include "demo/evaluate/detector.h"
#include "demo/evaluate/segmentation.h"

namespace wan::demo {

// Returns the overlap (intersection over union, 0 to 1) of one object in one frame with the shape,
// in the pose (place, radius, angle) in which they overlap most. `layer.masks[frame]` must not be
// empty; it says where the object is. The object's pixels are read again from the clip, because the
// mask was made from a smoothed picture, which has no sharp corners. `shape` and `angle` are
// results of ShapeMatcher. A perfect clip gets 0.97 or more if the radius is 20 pixels or more.
double OutlineOverlap(const ClipView& clip, int frame, const Segmentation& segmentation,
                      const Layer& layer, int shape, double angle);

}  // namespace wan::demo
