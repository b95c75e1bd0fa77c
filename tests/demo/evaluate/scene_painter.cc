#include "tests/demo/evaluate/scene_painter.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "demo/evaluate/vocabulary.h"

namespace wan::demo {
namespace {

constexpr double kPi = std::numbers::pi;

struct Point {
  double x, y;
};

using Polygon = std::vector<Point>;

// `corners` points around the middle, the first at the top, on radii that take turns.
Polygon Spokes(int corners, const std::vector<double>& radii, double first = 0) {
  Polygon polygon;
  for (int i = 0; i < corners; ++i) {
    const double angle = first + 2 * kPi * i / corners;
    const double radius = radii[i % radii.size()];
    polygon.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
  return polygon;
}

Polygon Outline(const std::string& shape) {
  if (shape == "circle") return Spokes(64, {0.85});
  if (shape == "square") return Spokes(4, {1.07}, kPi / 4);
  if (shape == "triangle") return Spokes(3, {1.0});
  if (shape == "star") return Spokes(10, {1.0, 0.46});
  if (shape == "cross") {
    constexpr double a = 0.33, b = 0.95;
    return {{-a, -b}, {a, -b}, {a, -a}, {b, -a}, {b, a},   {a, a},
            {a, b},   {-a, b}, {-a, a}, {-b, a}, {-b, -a}, {-a, -a}};
  }
  // A heart: two half circles on the upper sides of a square that stands on its tip.
  Polygon heart = {{0, 0.91}};
  for (const double side : {-1.0, 1.0}) {
    for (int i = 0; i <= 24; ++i) {
      const double angle = side < 0 ? kPi * 3 / 4 + kPi * i / 24 : -kPi * 3 / 4 + kPi * i / 24;
      heart.push_back({side * 0.396 + 0.56 * std::cos(angle), -0.276 + 0.56 * std::sin(angle)});
    }
  }
  return heart;
}

bool Inside(const Polygon& polygon, double x, double y) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const Point &a = polygon[i], &b = polygon[j];
    if ((a.y > y) != (b.y > y) && x < (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x) {
      inside = !inside;
    }
  }
  return inside;
}

struct Pose {
  double x, y, radius, angle;
};

Pose PoseAt(const PaintedObject& object, double s) {
  Pose pose{object.x, object.y, object.radius, 0.1};
  const double way = object.reach * (2 * s - 1);
  const std::string& motion = object.motion;
  if (motion == "right") pose.x += way;
  if (motion == "left") pose.x -= way;
  if (motion == "down") pose.y += way;
  if (motion == "up") pose.y -= way;
  if (motion == "grow") pose.radius *= 1 + 0.4 * (2 * s - 1);
  if (motion == "shrink") pose.radius *= 1 - 0.4 * (2 * s - 1);
  if (motion == "spin") pose.angle += 3.6 * s;
  if (motion == "bounce") {
    const double hop = std::fmod(2 * std::min(s, 0.999), 1.0);
    pose.y += 2 * object.reach * (0.5 - 4 * hop * (1 - hop));
  }
  if (motion == "orbit") {
    pose.x += 0.8 * object.reach * std::cos(1 + 2 * kPi * s);
    pose.y += 0.8 * object.reach * std::sin(1 + 2 * kPi * s);
  }
  return pose;
}

Rgb ColourOf(const std::vector<NamedColour>& table, const std::string& name) {
  return std::find_if(table.begin(), table.end(),
                      [&](const NamedColour& colour) { return colour.name == name; })
      ->rgb;
}

void PutPixel(uint8_t* pixel, const Rgb& rgb) {
  pixel[0] = static_cast<uint8_t>(rgb.r);
  pixel[1] = static_cast<uint8_t>(rgb.g);
  pixel[2] = static_cast<uint8_t>(rgb.b);
}

// Every other eighth of the outline is moved outwards, the others inwards.
double Lump(double lumps, double u, double v) { return 1 + lumps * std::sin(4 * std::atan2(v, u)); }

void PaintObject(const Polygon& outline, const Pose& pose, double lumps, const Rgb& rgb,
                 uint8_t* frame) {
  const double cosine = std::cos(pose.angle), sine = std::sin(pose.angle);
  const int reach = static_cast<int>(1.2 * pose.radius) + 1;
  for (int y = std::max(0, int(pose.y) - reach); y < std::min(kPaintedSize, int(pose.y) + reach);
       ++y) {
    for (int x = std::max(0, int(pose.x) - reach); x < std::min(kPaintedSize, int(pose.x) + reach);
         ++x) {
      const double dx = (x + 0.5 - pose.x) / pose.radius, dy = (y + 0.5 - pose.y) / pose.radius;
      const double u = cosine * dx + sine * dy, v = cosine * dy - sine * dx;
      const double lump = Lump(lumps, u, v);
      if (!Inside(outline, u / lump, v / lump)) continue;
      PutPixel(frame + (size_t(y) * kPaintedSize + x) * 3, rgb);
    }
  }
}

void PaintBackground(const Rgb& rgb, int vignette, const std::vector<Pose>& poses,
                     std::vector<uint8_t>& frame) {
  auto less = [&](float level) { return std::max(0.0f, level - float(vignette)); };
  const Rgb darker{less(rgb.r), less(rgb.g), less(rgb.b)};
  for (int y = 0; y < kPaintedSize; ++y) {
    for (int x = 0; x < kPaintedSize; ++x) {
      const bool near = std::any_of(poses.begin(), poses.end(), [&](const Pose& pose) {
        return std::hypot(x - pose.x, y - pose.y) < 1.6 * pose.radius;
      });
      PutPixel(&frame[(size_t(y) * kPaintedSize + x) * 3], near ? rgb : darker);
    }
  }
}

void Blur(std::vector<uint8_t>& frame) {
  const std::vector<uint8_t> sharp = frame;
  for (int y = 0; y < kPaintedSize; ++y) {
    for (int x = 0; x < kPaintedSize; ++x) {
      for (int c = 0; c < 3; ++c) {
        int sum = 0;
        for (int v = y - 1; v <= y + 1; ++v) {
          for (int u = x - 1; u <= x + 1; ++u) {
            sum += sharp[(size_t(std::clamp(v, 0, kPaintedSize - 1)) * kPaintedSize +
                          std::clamp(u, 0, kPaintedSize - 1)) *
                             3 +
                         c];
          }
        }
        frame[(size_t(y) * kPaintedSize + x) * 3 + c] = static_cast<uint8_t>(sum / 9);
      }
    }
  }
}

}  // namespace

std::vector<uint8_t> Paint(const PaintedScene& scene) {
  const Vocabulary& vocabulary = TheVocabulary();
  const Rgb background = ColourOf(vocabulary.backgrounds, scene.background);
  std::mt19937 random(1);
  std::vector<uint8_t> clip;
  for (int t = 0; t < kPaintedFrames; ++t) {
    std::vector<uint8_t> frame(size_t(kPaintedSize) * kPaintedSize * 3);
    std::vector<Pose> poses;
    for (const PaintedObject& object : scene.objects) {
      poses.push_back(PoseAt(object, t / double(kPaintedFrames - 1)));
    }
    PaintBackground(background, scene.vignette, poses, frame);
    for (size_t i = 0; i < poses.size(); ++i) {
      const PaintedObject& object = scene.objects[i];
      PaintObject(Outline(object.shape), poses[i], 2 * t < kPaintedFrames ? 0 : object.lumps,
                  ColourOf(vocabulary.colours, object.colour), frame.data());
    }
    for (int i = 0; i < scene.blur; ++i) Blur(frame);
    if (scene.noise > 0) {
      std::uniform_int_distribution<int> shift(-scene.noise, scene.noise);
      for (uint8_t& value : frame) {
        value = static_cast<uint8_t>(std::clamp(value + shift(random), 0, 255));
      }
    }
    clip.insert(clip.end(), frame.begin(), frame.end());
  }
  return clip;
}

ClipView ViewOf(const std::vector<uint8_t>& painted) {
  return {painted, kPaintedFrames, kPaintedSize, kPaintedSize};
}

}  // namespace wan::demo
