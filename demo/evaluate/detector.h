// What a clip of the demo's world shows: a pure function of its pixels, without machine learning.
//
// Made for pictures that a small model generates, so ragged edges, blur, noise and colours that are
// a little off do no harm. How it works and how it was checked: demo/EVALUATION.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

// 8-bit RGB, [frames, height, width, 3], row-major.
struct ClipView {
  std::span<const uint8_t> rgb;
  int frames = 0;
  int height = 0;
  int width = 0;
};

struct SeenObject {
  // Names of demo/vocabulary.json; motion "still" for an object that does nothing.
  std::string colour;
  std::string shape;
  std::string motion;
  // Where it is on the average: "left" or "right".
  std::string side;
  // How well the shape's outline fits, as intersection over union, 0 to 1.
  double shape_fit = 0;
  // Share of the frames that show it.
  double presence = 0;
  // Of every frame that shows the whole object, in order: how well its outline is that of `shape`
  // in the best pose, as intersection over union of the pixels themselves. Stricter than shape_fit,
  // which forgives small lumps. A frame without the object has 0.
  std::vector<double> outline;

  friend bool operator==(const SeenObject&, const SeenObject&) = default;
};

struct Sight {
  std::string background;
  // None, one or two; the larger colour first.
  std::vector<SeenObject> objects;

  friend bool operator==(const Sight&, const Sight&) = default;
};

// INVALID_ARGUMENT if the clip is smaller than 32x32, has no frames, or `rgb` is not as long as the
// sizes say. About 0.1 s for 33 frames of 256x256 on one core.
absl::StatusOr<Sight> Detect(const ClipView& clip);

}  // namespace wan::demo
