#include "engine/media/stored_image.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace wan {
namespace {

// Rounds to nearest. Ties cannot occur, because 255 is odd.
uint8_t Mix(int color, int background, int opacity) {
  return static_cast<uint8_t>((color * opacity + background * (kOpaque - opacity) + kOpaque / 2) /
                              kOpaque);
}

// Maps positions in the shown picture to positions in the stored picture.
struct Turning {
  bool exchanges_sides;  // rows are swapped with columns
  bool from_right;       // shown rows begin at the right end of stored rows
  bool from_bottom;      // shown columns begin at the bottom of stored columns
};

// The index is the EXIF orientation minus 1.
constexpr Turning kTurnings[] = {
    {false, false, false},  // as the file stores it
    {false, true, false},   // mirrored, left to right
    {false, true, true},    // turned by 180 degrees
    {false, false, true},   // mirrored, top to bottom
    {true, false, false},   // mirrored along the diagonal from the upper left
    {true, false, true},    // turned clockwise by 90 degrees
    {true, true, true},     // mirrored along the diagonal from the upper right
    {true, true, false},    // turned counterclockwise by 90 degrees
};

}  // namespace

BlendedImage Blend(StoredImage stored, const Color& background) {
  if (stored.channels == 3) return {{stored.width, stored.height, std::move(stored.pixels)}, false};
  BlendedImage blended{
      {stored.width, stored.height, std::vector<uint8_t>(stored.pixels.size() / 4 * 3)}, false};
  uint8_t* out = blended.image.pixels.data();
  for (size_t i = 0; i < stored.pixels.size(); i += 4, out += 3) {
    const uint8_t* const in = stored.pixels.data() + i;
    const int opacity = in[3];
    blended.had_transparency |= opacity != kOpaque;
    out[0] = Mix(in[0], background.red, opacity);
    out[1] = Mix(in[1], background.green, opacity);
    out[2] = Mix(in[2], background.blue, opacity);
  }
  return blended;
}

bool ExchangesSides(int exif_orientation) {
  return kTurnings[exif_orientation - 1].exchanges_sides;
}

RgbImage Turn(RgbImage image, int exif_orientation) {
  const Turning& turning = kTurnings[exif_orientation - 1];
  if (exif_orientation == 1) return image;
  const ptrdiff_t row = static_cast<ptrdiff_t>(image.width) * 3;
  // Distances in `image`, in bytes, between neighbours in a shown row and between shown rows.
  const ptrdiff_t across = turning.from_right ? -3 : 3;
  const ptrdiff_t down = turning.from_bottom ? -row : row;
  const ptrdiff_t step = turning.exchanges_sides ? down : across;
  const ptrdiff_t next_row = turning.exchanges_sides ? across : down;
  RgbImage turned = image;
  if (turning.exchanges_sides) std::swap(turned.width, turned.height);
  const uint8_t* first = image.pixels.data() + (turning.from_right ? row - 3 : 0) +
                         (turning.from_bottom ? row * (image.height - 1) : 0);
  uint8_t* out = turned.pixels.data();
  for (int y = 0; y < turned.height; ++y, first += next_row) {
    const uint8_t* in = first;
    for (int x = 0; x < turned.width; ++x, in += step, out += 3) std::copy_n(in, 3, out);
  }
  return turned;
}

}  // namespace wan
