// A request's image: properties of its file, and the steps that made it a first frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// An opaque colour in sRGB.
struct Color {
  uint8_t red = 255;
  uint8_t green = 255;
  uint8_t blue = 255;

  friend bool operator==(const Color&, const Color&) = default;
};

// Describes an image that was read for a request. Engine::CheckImage returns it when the job is
// created; it is stored with the job, so that the owner sees what was done.
struct InputImage {
  std::string format;  // "PNG", "JPEG" or "WebP"
  int width = 0;       // pixels of the image as displayed, after rotation
  int height = 0;
  int exif_orientation = 1;           // 1 to 8; 1: not rotated
  std::optional<Color> blended_over;  // set if the image has transparent parts
  int bits_per_sample = 8;            // bits in the file; 16 is scaled to 8
  bool grey = false;                  // the file has no colours

  friend bool operator==(const InputImage&, const InputImage&) = default;
};

}  // namespace wan
