#include "demo/evaluate/motion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace wan::demo {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kQuarter = kPi / 2;

template <typename Place>
std::vector<TrackPoint> Track(Place place, int frames = 33) {
  std::vector<TrackPoint> track;
  for (int t = 0; t < frames; ++t) {
    TrackPoint point{.time = t / double(frames - 1), .x = 100, .y = 100, .radius = 30};
    place(point);
    track.push_back(point);
  }
  return track;
}

TEST(Motion, TheGreaterWayCounts) {
  EXPECT_EQ(
      MotionOf(Track([](TrackPoint& p) { p.x += 60 * p.time, p.y -= 40 * p.time; }), kQuarter),
      "right");
  EXPECT_EQ(
      MotionOf(Track([](TrackPoint& p) { p.x += 40 * p.time, p.y -= 60 * p.time; }), kQuarter),
      "up");
}

TEST(Motion, FramesMayBeMissing) {
  std::vector<TrackPoint> track = Track([](TrackPoint& p) { p.x -= 60 * p.time; });
  track.erase(track.begin() + 8, track.begin() + 20);
  EXPECT_EQ(MotionOf(track, kQuarter), "left");
}

TEST(Motion, HopsAreNoWayAndNoCircle) {
  EXPECT_EQ(MotionOf(Track([](TrackPoint& p) {
                       const double hop = std::fmod(2 * std::min(p.time, 0.999), 1.0);
                       p.y -= 400 * hop * (1 - hop);
                     }),
                     kQuarter),
            "bounce");
}

// Angles are known up to a quarter turn only.
TEST(Motion, FollowsATurnPastItsPeriod) {
  const auto turned = [](double radians) {
    return Track([radians](TrackPoint& p) {
      p.angle = std::fmod(10 * kQuarter + radians * p.time, kQuarter);
    });
  };
  EXPECT_EQ(MotionOf(turned(3.2), kQuarter), "spin");
  EXPECT_EQ(MotionOf(turned(-4.4), kQuarter), "spin");
  EXPECT_EQ(MotionOf(turned(0.5), kQuarter), "still");
}

TEST(Motion, JumpingAnglesAreNoTurn) {
  int frame = 0;
  EXPECT_EQ(MotionOf(Track([&](TrackPoint& p) {
                       ++frame;
                       p.angle = (frame * frame * 7 % 11) * 0.14;
                     }),
                     kQuarter),
            "still");
}

// A wheel that rolls by goes somewhere.
TEST(Motion, WhatMovesOnDoesNotSpin) {
  EXPECT_EQ(MotionOf(Track([](TrackPoint& p) {
                       p.x += 80 * p.time;
                       p.angle = std::fmod(4 * p.time, kQuarter);
                     }),
                     kQuarter),
            "right");
}

TEST(Motion, FewPointsAreNoTrack) {
  EXPECT_EQ(MotionOf(Track([](TrackPoint& p) { p.x += 90 * p.time; }, 4), kQuarter), "still");
  EXPECT_EQ(MotionOf({}, kQuarter), "still");
}

}  // namespace
}  // namespace wan::demo
