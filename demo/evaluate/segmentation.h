// Which pixels of a clip belong to which object. For the detector.
#pragma once

#include <cstdint>
#include <vector>

#include "demo/evaluate/detector.h"
#include "demo/evaluate/vocabulary.h"

namespace wan::demo {

// The pixels of one object in one frame.
struct Mask {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> inside;  // 1 or 0, row-major

  bool At(int x, int y) const {
    return x >= 0 && y >= 0 && x < width && y < height && inside[size_t(y) * width + x] != 0;
  }

  // Of the pixels inside, in pixels; a pixel's centre is at +0.5.
  int area = 0;
  double x = 0;
  double y = 0;
  // It has all of the object: neither the frame nor another object cuts it.
  bool whole = true;
};

// One object through the clip.
struct Layer {
  int colour = 0;           // index into Vocabulary::colours
  Rgb rgb;                  // as it was seen, on the average
  std::vector<Mask> masks;  // one a frame; area 0 where it is not seen
};

struct Segmentation {
  int background = 0;         // index into Vocabulary::backgrounds
  Rgb ground;                 // the background as it was seen
  std::vector<Layer> layers;  // at most two
};

// `clip` has been checked.
Segmentation Segment(const ClipView& clip, const Vocabulary& vocabulary);

}  // namespace wan::demo
