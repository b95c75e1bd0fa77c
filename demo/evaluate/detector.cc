#include "demo/evaluate/detector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "demo/evaluate/motion.h"
#include "demo/evaluate/outline.h"
#include "demo/evaluate/segmentation.h"
#include "demo/evaluate/shape_matcher.h"
#include "demo/evaluate/vocabulary.h"

namespace wan::demo {
namespace {

constexpr int kSmallestSide = 32;
// The lengths in motion.cc are given for a frame whose shorter side has this many pixels.
constexpr double kUsualSide = 256;
// If fewer frames than this show the whole object, the frames that cut it also vote on its shape.
constexpr int kEnoughWhole = 4;

absl::Status Check(const ClipView& clip) {
  if (clip.frames < 1 || clip.width < kSmallestSide || clip.height < kSmallestSide) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a clip has at least one frame of at least ", kSmallestSide, "x", kSmallestSide,
        " pixels; this one has ", clip.frames, " of ", clip.width, "x", clip.height));
  }
  const size_t expected = size_t(clip.frames) * clip.height * clip.width * 3;
  if (clip.rgb.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("a clip of ", clip.frames, " frames of ",
                                                   clip.width, "x", clip.height, " has ", expected,
                                                   " bytes, not ", clip.rgb.size()));
  }
  return absl::OkStatus();
}

SeenObject Describe(const ClipView& clip, const Segmentation& segmentation, const Layer& layer,
                    const Vocabulary& vocabulary) {
  static const ShapeMatcher matcher;
  const int frames = static_cast<int>(layer.masks.size());
  const auto whole = std::count_if(layer.masks.begin(), layer.masks.end(),
                                   [](const Mask& mask) { return mask.area > 0 && mask.whole; });
  const bool cut_ones_vote = whole < kEnoughWhole;

  struct Seen {
    int frame;
    std::array<ShapeFit, kShapes> fits;
  };
  std::vector<Seen> seen;
  std::array<double, kShapes> votes{};
  int voters = 0;
  double x_sum = 0;
  for (int t = 0; t < frames; ++t) {
    const Mask& mask = layer.masks[t];
    if (mask.area == 0) continue;
    x_sum += mask.x;
    seen.push_back({t, matcher.Match(mask)});
    if (!mask.whole && !cut_ones_vote) continue;
    ++voters;
    for (int k = 0; k < kShapes; ++k) votes[k] += seen.back().fits[k].overlap;
  }
  const auto shape = std::max_element(votes.begin(), votes.end()) - votes.begin();

  // A circle has no angle; but a blob that is taken for one may still be seen to turn.
  int turning = -1;
  for (int k = 0; k < kShapes; ++k) {
    if (ShapeMatcher::Period(k) > 0 && (turning < 0 || votes[k] > votes[turning])) turning = k;
  }
  std::vector<double> outline;
  for (size_t t = 0, next = 0; t < layer.masks.size(); ++t) {
    const Mask& mask = layer.masks[t];
    if (mask.area == 0) {
      outline.push_back(0);
      continue;
    }
    const Seen& one = seen[next++];
    if (!mask.whole) continue;
    outline.push_back(OutlineOverlap(clip, static_cast<int>(t), segmentation, layer,
                                     static_cast<int>(shape), one.fits[shape].angle));
  }
  // Lengths are converted to a frame of the usual size, because the limits for motions are given
  // for it.
  const double unit = kUsualSide / double(std::min(clip.width, clip.height));
  std::vector<TrackPoint> track;
  for (const Seen& one : seen) {
    const Mask& mask = layer.masks[one.frame];
    track.push_back({.time = frames > 1 ? one.frame / double(frames - 1) : 0,
                     .x = unit * mask.x,
                     .y = unit * mask.y,
                     .radius = unit * std::sqrt(mask.area / std::numbers::pi),
                     .angle = one.fits[turning].angle});
  }
  return {.colour = vocabulary.colours[layer.colour].name,
          .shape = std::string(ShapeMatcher::Name(static_cast<int>(shape))),
          .motion = std::string(MotionOf(track, ShapeMatcher::Period(turning))),
          .side = x_sum * 2 < double(clip.width) * double(seen.size()) ? "left" : "right",
          .shape_fit = votes[shape] / voters,
          .presence = double(seen.size()) / frames,
          .outline = std::move(outline)};
}

}  // namespace

absl::StatusOr<Sight> Detect(const ClipView& clip) {
  if (absl::Status status = Check(clip); !status.ok()) return status;
  const Vocabulary& vocabulary = TheVocabulary();
  const Segmentation segmentation = Segment(clip, vocabulary);
  Sight sight{.background = vocabulary.backgrounds[segmentation.background].name};
  for (const Layer& layer : segmentation.layers) {
    sight.objects.push_back(Describe(clip, segmentation, layer, vocabulary));
  }
  return sight;
}

}  // namespace wan::demo
