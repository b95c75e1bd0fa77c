// How well the outlines of an object are those of an ideal shape. For the detector.
#pragma once

#include "demo/evaluate/detector.h"
#include "demo/evaluate/segmentation.h"

namespace wan::demo {

// Returns the overlap (intersection over union, 0 to 1) of one object in one frame with the shape,
// in the pose (place, radius, angle) in which they overlap most. `layer.masks[frame]` is not empty
// and says where the object is; its pixels are read again from the clip, because the mask is of a
// smoothed picture, which has no sharp corners. `shape` and `angle` are ShapeMatcher's. A perfect
// clip gets 0.97 or more from a radius of 20 pixels on.
double OutlineOverlap(const ClipView& clip, int frame, const Segmentation& segmentation,
                      const Layer& layer, int shape, double angle);

}  // namespace wan::demo
