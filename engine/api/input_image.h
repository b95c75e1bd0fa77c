// A request's image: the properties of its file, and what is done to make it a first frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// An opaque colour in the colour space sRGB.
struct Color {
  uint8_t red = 255;
  uint8_t green = 255;
  uint8_t blue = 255;

  friend bool operator==(const Color&, const Color&) = default;
};

// Describes the image of a request as it was read. Engine::CheckImage returns it when a job is
// created. The server stores it with the job, so that the job's owner sees what was done.
struct InputImage {
  std::string format;  // "PNG", "JPEG" or "WebP"
  int width = 0;       // pixels of the image as it is displayed, after rotation
  int height = 0;
  int exif_orientation = 1;           // 1 to 8 as in EXIF; 1: not rotated
  std::optional<Color> blended_over;  // set if the image has transparent parts
  int bits_per_sample = 8;            // bits per value in the file; 16 are scaled to 8
  bool grey = false;                  // true: the file has no colours

  friend bool operator==(const InputImage&, const InputImage&) = default;
};

}  // namespace wan
