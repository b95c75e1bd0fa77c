// Says for the detector which pixels of a clip belong to which object.
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
  std::vector<uint8_t> inside;  // 1 for the object's pixels, otherwise 0; row-major

  bool At(int x, int y) const {
    return x >= 0 && y >= 0 && x < width && y < height && inside[size_t(y) * width + x] != 0;
  }

  // The following members describe the object's pixels, in pixels; the centre of a pixel is at
  // +0.5.
  int area = 0;
  double x = 0;
  double y = 0;
  // Whether the mask has all of the object: neither the frame nor another object cuts it.
  bool whole = true;
};

// One object through the whole clip.
struct Layer {
  int colour = 0;  // the index of its colour in Vocabulary::colours
  Rgb rgb;         // its colour as it was seen, on average
  // A mask for each frame; its area is 0 if the frame does not show the object.
  std::vector<Mask> masks;
};

struct Segmentation {
  int background = 0;         // index of the background in Vocabulary::backgrounds
  Rgb ground;                 // the colour of the background as it was seen
  std::vector<Layer> layers;  // at most two objects
};

// The caller must have checked `clip`.
Segmentation Segment(const ClipView& clip, const Vocabulary& vocabulary);

}  // namespace wan::demo
