// Clips of the demo's world, drawn for tests: outlines as polygons, apart from the detector's own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "demo/evaluate/detector.h"

namespace wan::demo {

struct PaintedObject {
  std::string colour = "red";  // of the vocabulary, as all names here
  std::string shape = "square";
  std::string motion = "right";
  double x = 128;  // centre of the way, pixels
  double y = 128;
  double radius = 45;
  double reach = 55;  // half of a straight way
  // In the clip's last half, the outline bulges and dents by this share of the radius.
  double lumps = 0;
};

struct PaintedScene {
  std::string background = "black";
  std::vector<PaintedObject> objects;
  int blur = 0;      // box filters of 3x3 pixels, one after the other
  int noise = 0;     // every value is moved by up to this
  int vignette = 0;  // the background is darker by this, but not within 1.6 radii of an object
};

inline constexpr int kPaintedSize = 256;
inline constexpr int kPaintedFrames = 33;

// [kPaintedFrames, kPaintedSize, kPaintedSize, 3]
std::vector<uint8_t> Paint(const PaintedScene& scene);

ClipView ViewOf(const std::vector<uint8_t>& painted);

}  // namespace wan::demo
