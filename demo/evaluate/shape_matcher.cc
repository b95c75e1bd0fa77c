#include "demo/evaluate/shape_matcher.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace wan::demo {
namespace {

constexpr double kPi = std::numbers::pi;
// Half the side of the square that a template covers; the unit is the square root of the shape's
// area.
constexpr double kReach = 1.15;
constexpr double kAngleStep = 5 * kPi / 180;
// Try small shifts as well, because centre and area of ragged and cut masks are a little off.
constexpr double kShift = 0.05;
constexpr double kScale = 1.06;

// The shapes as demo/train/world.py draws them: with radius 1, upright; v points down.
bool InCircle(double u, double v) { return std::hypot(u, v) < 0.85; }

bool InSquare(double u, double v) { return std::max(std::abs(u), std::abs(v)) < 0.76; }

bool InTriangle(double u, double v) {
  return v < 0.5 && std::sqrt(3.0) / 2 * std::abs(u) - v / 2 < 0.5;
}

bool InStar(double u, double v) {
  constexpr double sector = kPi / 5;
  const double turn = std::atan2(u, -v);
  const double folded = turn - 2 * sector * std::round(turn / (2 * sector));
  const double distance = std::hypot(u, v);
  const double along = distance * std::cos(folded);
  const double across = std::abs(distance * std::sin(folded));
  const double notch_x = 0.46 * std::cos(sector), notch_y = 0.46 * std::sin(sector);
  return (along - 1) * notch_y + across * (1 - notch_x) < 0;
}

bool InHeart(double u, double v) {
  constexpr double a = 0.56;
  const double w = v - 0.12;
  const double p = (u - w) / std::numbers::sqrt2, q = (-u - w) / std::numbers::sqrt2;
  return (std::abs(p) < a && std::abs(q) < a) || std::hypot(p - a, q) < a ||
         std::hypot(p, q - a) < a;
}

bool InCross(double u, double v) {
  return (std::abs(u) < 0.95 && std::abs(v) < 0.33) || (std::abs(u) < 0.33 && std::abs(v) < 0.95);
}

struct Shape {
  std::string_view name;
  bool (*inside)(double u, double v);
  double period;
};

constexpr std::array<Shape, kShapes> kTable = {{
    {"circle", InCircle, 0},
    {"square", InSquare, kPi / 2},
    {"triangle", InTriangle, 2 * kPi / 3},
    {"star", InStar, 2 * kPi / 5},
    {"heart", InHeart, 2 * kPi},
    {"cross", InCross, kPi / 2},
}};

struct Moments {
  double area = 0;
  double u = 0;
  double v = 0;
};

Moments MomentsOf(const Shape& shape) {
  constexpr double step = 0.01;
  Moments sum;
  for (double v = -1.3; v < 1.3; v += step) {
    for (double u = -1.3; u < 1.3; u += step) {
      if (!shape.inside(u, v)) continue;
      sum.area += step * step;
      sum.u += u * step * step;
      sum.v += v * step * step;
    }
  }
  return {sum.area, sum.u / sum.area, sum.v / sum.area};
}

int Count(const auto& bits) {
  int count = 0;
  for (const uint64_t row : bits) count += std::popcount(row);
  return count;
}

// Returns the coordinate of the middle of a cell of the grid.
double Cell(int index, int cells) { return ((index + 0.5) / cells * 2 - 1) * kReach; }

}  // namespace

ShapeMatcher::ShapeMatcher() {
  for (int k = 0; k < kShapes; ++k) {
    first_[k] = static_cast<int>(templates_.size());
    const Shape& shape = kTable[k];
    const Moments moments = MomentsOf(shape);
    const double unit = std::sqrt(moments.area);
    const int angles = std::max(1, static_cast<int>(std::lround(shape.period / kAngleStep)));
    for (int i = 0; i < angles; ++i) {
      Template made{.shape = k, .angle = shape.period * i / angles, .bits = {}, .area = 0};
      const double cosine = std::cos(made.angle), sine = std::sin(made.angle);
      for (int row = 0; row < kGrid; ++row) {
        for (int column = 0; column < kGrid; ++column) {
          const double x = Cell(column, kGrid) * unit, y = Cell(row, kGrid) * unit;
          const double u = cosine * x + sine * y + moments.u;
          const double v = cosine * y - sine * x + moments.v;
          if (shape.inside(u, v)) made.bits[row] |= uint64_t{1} << column;
        }
      }
      made.area = Count(made.bits);
      templates_.push_back(made);
    }
  }
  first_[kShapes] = static_cast<int>(templates_.size());
}

std::string_view ShapeMatcher::Name(int shape) { return kTable[shape].name; }

double ShapeMatcher::Period(int shape) { return kTable[shape].period; }

bool ShapeMatcher::Inside(int shape, double u, double v) { return kTable[shape].inside(u, v); }

ShapeMatcher::Bits ShapeMatcher::Sample(const Mask& mask, double x, double y, double unit) {
  std::array<int, kGrid> columns;
  for (int i = 0; i < kGrid; ++i) {
    const int at = static_cast<int>(std::floor(x + Cell(i, kGrid) * unit));
    columns[i] = at >= 0 && at < mask.width ? at : -1;
  }
  Bits bits{};
  for (int row = 0; row < kGrid; ++row) {
    const int at = static_cast<int>(std::floor(y + Cell(row, kGrid) * unit));
    if (at < 0 || at >= mask.height) continue;
    const uint8_t* const line = &mask.inside[size_t(at) * mask.width];
    for (int i = 0; i < kGrid; ++i) {
      if (columns[i] >= 0 && line[columns[i]] != 0) bits[row] |= uint64_t{1} << i;
    }
  }
  return bits;
}

double ShapeMatcher::Overlap(const Template& shape, const Bits& bits, int area) {
  int both = 0;
  for (int row = 0; row < kGrid; ++row) both += std::popcount(shape.bits[row] & bits[row]);
  return double(both) / (shape.area + area - both);
}

std::array<ShapeFit, kShapes> ShapeMatcher::Match(const Mask& mask) const {
  const double unit = std::sqrt(double(mask.area));
  std::array<ShapeFit, kShapes> fits;
  std::array<int, kShapes> best{};
  auto keep = [&](int index, const Bits& bits, int area) {
    const Template& shape = templates_[index];
    const double overlap = Overlap(shape, bits, area);
    if (overlap <= fits[shape.shape].overlap) return;
    fits[shape.shape] = {overlap, shape.angle};
    best[shape.shape] = index;
  };

  const Bits centred = Sample(mask, mask.x, mask.y, unit);
  const int centred_area = Count(centred);
  for (int i = 0; i < first_[kShapes]; ++i) keep(i, centred, centred_area);

  // Search around the best angle of each shape.
  const std::array<int, kShapes> start = best;
  for (const double scale : {1 / kScale, 1.0, kScale}) {
    for (const double dx : {-kShift, 0.0, kShift}) {
      for (const double dy : {-kShift, 0.0, kShift}) {
        const Bits bits = Sample(mask, mask.x + dx * unit, mask.y + dy * unit, unit * scale);
        const int area = Count(bits);
        for (int k = 0; k < kShapes; ++k) {
          const int angles = first_[k + 1] - first_[k];
          for (int turn = -1; turn <= 1; ++turn) {
            keep(first_[k] + (start[k] - first_[k] + turn + angles) % angles, bits, area);
          }
        }
      }
    }
  }
  return fits;
}

}  // namespace wan::demo
