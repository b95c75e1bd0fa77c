#include "engine/media/exif.h"

#include <cstddef>
#include <cstdint>

namespace wan {
namespace {

using namespace std::string_view_literals;

constexpr int kAsStored = 1;
constexpr int kLastOrientation = 8;

// Reads the numbers of a TIFF file in the file's byte order; beyond the end of the file it reads 0.
class TiffReader {
 public:
  TiffReader(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  uint32_t Number(uint64_t offset, int size) const {
    if (offset + static_cast<uint64_t>(size) > bytes_.size()) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      const int place = big_endian_ ? i : size - 1 - i;
      value = value << 8 | static_cast<uint8_t>(bytes_[offset + static_cast<uint64_t>(place)]);
    }
    return value;
  }

 private:
  const std::string_view bytes_;
  const bool big_endian_;
};

}  // namespace

int ExifOrientation(std::string_view exif) {
  constexpr std::string_view kPrefix = "Exif\0\0"sv;
  if (exif.starts_with(kPrefix)) exif.remove_prefix(kPrefix.size());
  const bool big_endian = exif.starts_with("MM\0*"sv);
  if (!big_endian && !exif.starts_with("II*\0"sv)) return kAsStored;
  const TiffReader tiff(exif, big_endian);

  // The first directory consists of a count and entries of 12 bytes each (tag, type, count, value).
  constexpr int kEntryBytes = 12;
  constexpr uint32_t kOrientationTag = 0x0112;
  constexpr uint32_t kShort = 3;
  constexpr uint32_t kLong = 4;  // the standard requires a short, but some programs write a long
  const uint64_t directory = tiff.Number(4, 4);
  const uint32_t entries = tiff.Number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{kEntryBytes} * i;
    if (tiff.Number(entry, 2) != kOrientationTag) continue;
    const uint32_t type = tiff.Number(entry + 2, 2);
    if (type != kShort && type != kLong) return kAsStored;
    const uint32_t value = tiff.Number(entry + 8, type == kShort ? 2 : 4);
    const bool known = value >= kAsStored && value <= kLastOrientation;
    return known ? static_cast<int>(value) : kAsStored;
  }
  return kAsStored;
}

}  // namespace wan
