// Reads the orientation from EXIF data.
#pragma once

#include <string_view>

namespace wan {

// Returns the orientation, 1 to 8, that `exif` states. `exif` is a TIFF structure, with or without
// a leading "Exif\0\0", from JPEG's APP1 segment, PNG's eXIf or WebP's EXIF chunk. Returns 1 (not
// rotated) if no orientation is stated or the data is damaged. Damaged EXIF data is common, and
// viewers show the picture anyway. Thread-safe.
int ExifOrientation(std::string_view exif);

}  // namespace wan
