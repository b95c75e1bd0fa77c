// Which of the six shapes a mask is, and how it is turned. For the detector.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demo/evaluate/segmentation.h"

namespace wan::demo {

inline constexpr int kShapes = 6;

// How well one shape, at its best angle, covers a mask.
struct ShapeFit {
  double overlap = 0;  // intersection over union, 0 to 1
  double angle = 0;    // radians, clockwise on the screen, 0 to the shape's period
};

// Immutable, so several threads may use one.
class ShapeMatcher {
 public:
  ShapeMatcher();

  static std::string_view Name(int shape);
  // The shape looks the same after a turn by this many radians; 0 for the circle.
  static double Period(int shape);
  // Whether the upright shape of radius 1 covers a point; v points down.
  static bool Inside(int shape, double u, double v);

  // Of every shape. `mask` is not empty. The mask is moved to its centre and scaled to one area
  // first.
  std::array<ShapeFit, kShapes> Match(const Mask& mask) const;

 private:
  static constexpr int kGrid = 48;
  using Bits = std::array<uint64_t, kGrid>;  // a row each
  struct Template {
    int shape;
    double angle;
    Bits bits;
    int area;
  };

  static Bits Sample(const Mask& mask, double x, double y, double unit);
  static double Overlap(const Template& shape, const Bits& bits, int area);

  std::vector<Template> templates_;
  std::array<int, kShapes + 1> first_;  // of every shape's templates; the last is their number
};

}  // namespace wan::demo
