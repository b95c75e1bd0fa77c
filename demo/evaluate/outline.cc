#include "demo/evaluate/outline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "demo/evaluate/shape_matcher.h"

namespace wan::demo {
namespace {

// How many pixels around the mask are read as well: they show what sticks out of the mask and what
// its smoothing has lost.
constexpr int kMargin = 8;
// The search for the pose compares only the pixels that are at most this far from an edge; all
// others agree in any good pose.
constexpr int kBand = 4;
// The search halves its steps this many times; the steps begin with the following sizes, in pixels,
// as a share of the radius, and in radians.
constexpr int kRounds = 5;
constexpr double kStepPixels = 1.5, kStepRadius = 0.04, kStepAngle = 0.08;

struct Moments {
  double area = 0, u = 0, v = 0;
};

// Returns the moments of every shape with radius 1.
const std::array<Moments, kShapes>& ShapeMoments() {
  static const std::array<Moments, kShapes> all = [] {
    std::array<Moments, kShapes> sums;
    constexpr double step = 0.01;
    for (int k = 0; k < kShapes; ++k) {
      for (double v = -1.2; v < 1.2; v += step) {
        for (double u = -1.2; u < 1.2; u += step) {
          if (!ShapeMatcher::Inside(k, u, v)) continue;
          sums[k].area += step * step;
          sums[k].u += u * step * step;
          sums[k].v += v * step * step;
        }
      }
      sums[k].u /= sums[k].area;
      sums[k].v /= sums[k].area;
    }
    return sums;
  }();
  return all;
}

struct Pose {
  double x, y, radius, angle;
};

// A window of one frame, with the pixels in it that belong to the object.
struct Window {
  int left, top, width, height;
  std::vector<uint8_t> inside;
};

double Square(double value) { return value * value; }

double SquareDistance(const uint8_t* rgb, const Rgb& colour) {
  return Square(rgb[0] - colour.r) + Square(rgb[1] - colour.g) + Square(rgb[2] - colour.b);
}

Window ReadWindow(const ClipView& clip, int frame, const Segmentation& segmentation,
                  const Layer& layer) {
  const Mask& mask = layer.masks[frame];
  int left = mask.width, right = 0, top = mask.height, bottom = 0;
  for (int y = 0; y < mask.height; ++y) {
    for (int x = 0; x < mask.width; ++x) {
      if (!mask.At(x, y)) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
    }
  }
  left = std::max(0, left - kMargin);
  top = std::max(0, top - kMargin);
  right = std::min(mask.width, right + kMargin);
  bottom = std::min(mask.height, bottom + kMargin);
  Window window{left, top, right - left, bottom - top, {}};
  window.inside.resize(size_t(window.width) * window.height);

  const Rgb &own = layer.rgb, &ground = segmentation.ground;
  const double length = Square(Distance(own, ground));
  size_t at = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x, ++at) {
      const uint8_t* rgb = &clip.rgb[((size_t(frame) * clip.height + y) * clip.width + x) * 3];
      const double along =
          ((rgb[0] - ground.r) * (own.r - ground.r) + (rgb[1] - ground.g) * (own.g - ground.g) +
           (rgb[2] - ground.b) * (own.b - ground.b));
      bool is_own = along * 2 > length;
      for (const Layer& other : segmentation.layers) {
        if (&other == &layer) continue;
        // Two objects of one colour differ only in their place.
        is_own = is_own && !other.masks[frame].At(x, y) &&
                 SquareDistance(rgb, own) <= SquareDistance(rgb, other.rgb);
      }
      window.inside[at] = is_own;
    }
  }
  return window;
}

// The pixels that have both kinds of pixels around them, and the number of the other pixels of the
// object.
struct Edges {
  std::vector<int> band;
  int beyond = 0;
};

Edges FindEdges(const Window& window) {
  // The element sums[y][x] is the number of the object's pixels above and to the left of (x, y).
  const int width = window.width, height = window.height;
  std::vector<int> sums(size_t(width + 1) * (height + 1));
  auto sum = [&](int x, int y) -> int& { return sums[size_t(y) * (width + 1) + x]; };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      sum(x + 1, y + 1) =
          window.inside[size_t(y) * width + x] + sum(x, y + 1) + sum(x + 1, y) - sum(x, y);
    }
  }
  Edges edges;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int x0 = std::max(0, x - kBand), x1 = std::min(width, x + kBand + 1);
      const int y0 = std::max(0, y - kBand), y1 = std::min(height, y + kBand + 1);
      const int count = sum(x1, y1) - sum(x0, y1) - sum(x1, y0) + sum(x0, y0);
      if (count > 0 && count < (x1 - x0) * (y1 - y0)) {
        edges.band.push_back(y * width + x);
      } else {
        edges.beyond += window.inside[size_t(y) * width + x];
      }
    }
  }
  return edges;
}

// The ideal shape, in one pose.
class Ideal {
 public:
  Ideal(int shape, const Pose& pose)
      : shape_(shape),
        pose_(pose),
        cosine_(std::cos(pose.angle) / pose.radius),
        sine_(std::sin(pose.angle) / pose.radius) {}

  bool Covers(double x, double y) const {
    const double dx = x - pose_.x, dy = y - pose_.y;
    return ShapeMatcher::Inside(shape_, cosine_ * dx + sine_ * dy, cosine_ * dy - sine_ * dx);
  }

 private:
  int shape_;
  Pose pose_;
  double cosine_, sine_;
};

// Whether the ideal shape covers the middle of a window's pixel.
bool CoversPixel(const Ideal& ideal, const Window& window, int at) {
  const int row = at / window.width;
  const int column = at % window.width;
  return ideal.Covers(window.left + column + 0.5, window.top + row + 0.5);
}

double BandOverlap(const Window& window, const Edges& edges, const Ideal& ideal) {
  int both = edges.beyond, either = edges.beyond;
  for (const int at : edges.band) {
    const bool covered = CoversPixel(ideal, window, at);
    both += covered && window.inside[at];
    either += covered || window.inside[at];
  }
  return either == 0 ? 0 : double(both) / either;
}

double WholeOverlap(const Window& window, const Ideal& ideal) {
  int both = 0, either = 0;
  for (int at = 0; at < window.width * window.height; ++at) {
    const bool covered = CoversPixel(ideal, window, at);
    both += covered && window.inside[at];
    either += covered || window.inside[at];
  }
  return either == 0 ? 0 : double(both) / either;
}

}  // namespace

double OutlineOverlap(const ClipView& clip, int frame, const Segmentation& segmentation,
                      const Layer& layer, int shape, double angle) {
  const Mask& mask = layer.masks[frame];
  const Window window = ReadWindow(clip, frame, segmentation, layer);
  const Edges edges = FindEdges(window);
  const Moments& moments = ShapeMoments()[shape];
  const double radius = std::sqrt(mask.area / moments.area);
  Pose best{mask.x - radius * (std::cos(angle) * moments.u - std::sin(angle) * moments.v),
            mask.y - radius * (std::sin(angle) * moments.u + std::cos(angle) * moments.v), radius,
            angle};
  double most = BandOverlap(window, edges, Ideal(shape, best));
  double scale = 1;
  for (int round = 0; round < kRounds; scale /= 2) {
    bool better = false;
    for (double Pose::*part : {&Pose::x, &Pose::y, &Pose::radius, &Pose::angle}) {
      const double step = part == &Pose::radius  ? kStepRadius * radius
                          : part == &Pose::angle ? kStepAngle
                                                 : kStepPixels;
      for (const double way : {-scale * step, scale * step}) {
        Pose tried = best;
        tried.*part += way;
        const double overlap = BandOverlap(window, edges, Ideal(shape, tried));
        if (overlap <= most) continue;
        most = overlap;
        best = tried;
        better = true;
        break;
      }
    }
    // Keep the size of the steps as long as it helps.
    if (better) scale *= 2;
    if (!better) ++round;
  }
  return WholeOverlap(window, Ideal(shape, best));
}

}  // namespace wan::demo
