// Says for the detector which of the six shapes a mask shows, and by what angle it is turned.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "demo/evaluate/segmentation.h"

namespace wan::demo {

inline constexpr int kShapes = 6;

// How well one shape covers a mask at its best angle.
struct ShapeFit {
  double overlap = 0;  // intersection over union, 0 to 1
  double angle = 0;    // in radians, clockwise on the screen, from 0 to the shape's period
};

// The object is immutable, so several threads may use it.
class ShapeMatcher {
 public:
  ShapeMatcher();

  static std::string_view Name(int shape);
  // Returns the angle, in radians, by which the shape can be turned without looking different; 0
  // for the circle.
  static double Period(int shape);
  // Whether the upright shape of radius 1 covers a point; v points down.
  static bool Inside(int shape, double u, double v);

  // Returns the fit of every shape. `mask` must not be empty. The mask is first moved to its centre
  // and scaled so that its area is always the same.
  std::array<ShapeFit, kShapes> Match(const Mask& mask) const;

 private:
  static constexpr int kGrid = 48;
  using Bits = std::array<uint64_t, kGrid>;  // each element is a row of the grid
  struct Template {
    int shape;
    double angle;
    Bits bits;
    int area;
  };

  static Bits Sample(const Mask& mask, double x, double y, double unit);
  static double Overlap(const Template& shape, const Bits& bits, int area);

  std::vector<Template> templates_;
  std::array<int, kShapes + 1> first_;  // index of the first template of each shape; the last
                                        // element is the number of templates
};

}  // namespace wan::demo
