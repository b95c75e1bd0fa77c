// Says what a clip of the demo's world shows: a pure function of the clip's pixels, without machine
// learning.
//
// It is made for pictures that a small model generates, so it tolerates ragged edges, blur, noise
// and colours that are a little off. demo/EVALUATION.md says how it works and how it was checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

// Pixels in 8-bit RGB, [frames, height, width, 3], row-major.
struct ClipView {
  std::span<const uint8_t> rgb;
  int frames = 0;
  int height = 0;
  int width = 0;
};

struct SeenObject {
  // The names are those of demo/vocabulary.json; the motion is "still" for an object that does
  // nothing.
  std::string colour;
  std::string shape;
  std::string motion;
  // The side on which the object is on average: "left" or "right".
  std::string side;
  // How well the outline of the shape fits, as intersection over union, from 0 to 1.
  double shape_fit = 0;
  // The share of the frames that show the object.
  double presence = 0;
  // For every frame that shows the whole object, in order: how well the object's outline is that of
  // `shape` in the best pose, as intersection over union of the pixels themselves. This is stricter
  // than shape_fit, which forgives small lumps. A frame without the object has the value 0.
  std::vector<double> outline;

  friend bool operator==(const SeenObject&, const SeenObject&) = default;
};

struct Sight {
  std::string background;
  // None, one or two objects; the one with more pixels of its colour first.
  std::vector<SeenObject> objects;

  friend bool operator==(const Sight&, const Sight&) = default;
};

// Fails with INVALID_ARGUMENT if the clip is smaller than 32x32, has no frames, or `rgb` is not as
// long as the sizes say. It takes about 0.1 s for 33 frames of 256x256 on one core.
absl::StatusOr<Sight> Detect(const ClipView& clip);

}  // namespace wan::demo
