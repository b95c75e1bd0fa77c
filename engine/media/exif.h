// Reads the one value of EXIF data that decides how a picture is shown.
#pragma once

#include <string_view>

namespace wan {

// Returns the orientation, 1 to 8, that `exif` gives: a TIFF header and what follows, with or
// without "Exif\0\0" before it, as JPEG's APP1 segment, PNG's eXIf and WebP's EXIF chunk have it.
// 1 (the picture is left as it is stored) if there is none, or if the data is damaged: cameras and
// editors write much that is not quite EXIF, and no viewer refuses a picture for it. Thread-safe.
int ExifOrientation(std::string_view exif);

}  // namespace wan
