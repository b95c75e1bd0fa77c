#include "demo/evaluate/motion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>

namespace wan::demo {
namespace {

constexpr double kPi = std::numbers::pi;

// A motion is chosen by how much of the track it explains: the standard deviation, in pixels, of
// the part that fits. Below this value the object is still. True motions have a value from 13 (a
// short way of one of two objects) to 50.
constexpr double kStill = 5;
// Below this value the object may turn, because an object that turns stays in its place.
constexpr double kInPlace = 10;
// Growth gets this weight, because it shows in the radius, which changes less than a place does.
constexpr double kGrowthWeight = 1.5;
// A true spin turns by 3.4 to 3.8 radians.
constexpr double kLeastTurn = 1.2;
// The share of the angle's variance that a steady turn must explain.
constexpr double kSteadyTurn = 0.85;
constexpr size_t kFewestPoints = 5;

using Series = std::vector<double>;

Series Centred(const std::vector<TrackPoint>& track,
               const std::function<double(const TrackPoint&)>& value) {
  Series series;
  double sum = 0;
  for (const TrackPoint& point : track) sum += series.emplace_back(value(point));
  for (double& x : series) x -= sum / double(track.size());
  return series;
}

double Dot(const Series& a, const Series& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Returns the signed standard deviation of that part of `series` that is a multiple of `form`; the
// mean of both must be 0.
double Explained(const Series& series, const Series& form) {
  const double norm = Dot(form, form);
  return norm > 0 ? Dot(series, form) / std::sqrt(norm * double(series.size())) : 0;
}

// Compares the track with hops from a floor; downwards is positive, so the track's y is a positive
// multiple of the hops.
double BestBounce(const std::vector<TrackPoint>& track, const Series& y) {
  double best = 0;
  for (const double hops : {1.5, 1.75, 2.0, 2.25, 2.5, 3.0}) {
    const Series form = Centred(track, [&](const TrackPoint& point) {
      const double phase = hops * std::min(point.time, 0.999);
      const double hop = phase - std::floor(phase);
      return -hop * (1 - hop);
    });
    best = std::max(best, Explained(y, form));
  }
  return best;
}

// Compares the track with a circle at a steady pace, clockwise or counterclockwise.
double BestOrbit(const std::vector<TrackPoint>& track, const Series& x, const Series& y) {
  double best = 0;
  for (const double rounds : {0.8, 0.9, 1.0, 1.1, 1.25}) {
    const Series cosine = Centred(
        track, [&](const TrackPoint& point) { return std::cos(2 * kPi * rounds * point.time); });
    const Series sine = Centred(
        track, [&](const TrackPoint& point) { return std::sin(2 * kPi * rounds * point.time); });
    const double norm = Dot(cosine, cosine) + Dot(sine, sine);
    if (norm <= 0) continue;
    for (const double way : {1.0, -1.0}) {
      // The multiple of exp(i way phase) that is nearest to x + i y.
      const std::complex<double> fit(Dot(x, cosine) + way * Dot(y, sine),
                                     Dot(y, cosine) - way * Dot(x, sine));
      best = std::max(best, std::abs(fit) / std::sqrt(norm * double(x.size())));
    }
  }
  return best;
}

// Returns by how many radians the object has turned in all; 0 if it does not turn steadily.
double SteadyTurn(const std::vector<TrackPoint>& track, double period) {
  Series angles;
  for (const TrackPoint& point : track) {
    const double before = angles.empty() ? point.angle : angles.back();
    angles.push_back(point.angle - period * std::round((point.angle - before) / period));
  }
  std::vector<TrackPoint> turned = track;
  for (size_t i = 0; i < track.size(); ++i) turned[i].angle = angles[i];
  const Series angle = Centred(turned, [](const TrackPoint& point) { return point.angle; });
  const Series time = Centred(turned, [](const TrackPoint& point) { return point.time; });
  const double total = Dot(angle, angle);
  if (total <= 0) return 0;
  const double along = Dot(angle, time);
  const double norm = Dot(time, time);
  if (along * along / (norm * total) < kSteadyTurn) return 0;
  return std::abs(along / norm) * (track.back().time - track.front().time);
}

}  // namespace

std::string_view MotionOf(const std::vector<TrackPoint>& track, double period) {
  if (track.size() < kFewestPoints) return "still";
  const Series x = Centred(track, [](const TrackPoint& point) { return point.x; });
  const Series y = Centred(track, [](const TrackPoint& point) { return point.y; });
  const Series radius = Centred(track, [](const TrackPoint& point) { return point.radius; });
  const Series time = Centred(track, [](const TrackPoint& point) { return point.time; });

  const double across = Explained(x, time);
  const double along = Explained(y, time);
  const double growth = kGrowthWeight * Explained(radius, time);
  struct Candidate {
    std::string_view name;
    double score;
  };
  const std::array<Candidate, 8> candidates = {{{"right", across},
                                                {"left", -across},
                                                {"down", along},
                                                {"up", -along},
                                                {"grow", growth},
                                                {"shrink", -growth},
                                                {"bounce", BestBounce(track, y)},
                                                {"orbit", BestOrbit(track, x, y)}}};
  const Candidate best =
      *std::max_element(candidates.begin(), candidates.end(),
                        [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  if (best.score < kInPlace && SteadyTurn(track, period) >= kLeastTurn) return "spin";
  return best.score < kStill ? "still" : best.name;
}

}  // namespace wan::demo
