// Reads the orientation from EXIF data.
#pragma once

#include <string_view>

namespace wan {

// Returns the orientation, 1 to 8, from `exif`: a TIFF structure, with or without "Exif\0\0" before
// it, as in JPEG's APP1 segment, PNG's eXIf and WebP's EXIF chunk. Returns 1 (as stored) if there
// is none or the data is damaged, because cameras and editors write imperfect EXIF data and no
// viewer refuses a picture for it. Thread-safe.
int ExifOrientation(std::string_view exif);

}  // namespace wan
