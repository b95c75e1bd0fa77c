#include "engine/media/webp_decoder.h"

#include <webp/decode.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"

namespace wan {
namespace {

// A WebP file is a RIFF file: "RIFF", the number of the bytes that follow, "WEBP", and chunks, each
// of a name, a size, and as many bytes, to which one is added if the size is odd.
constexpr size_t kHeaderBytes = 12;
constexpr size_t kChunkHeaderBytes = 8;

uint32_t LittleEndian32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Returns the content of the first chunk with this name; empty if there is none. `file` has a whole
// header.
std::string_view FindChunk(std::string_view file, std::string_view name) {
  uint64_t at = kHeaderBytes;
  while (at + kChunkHeaderBytes <= file.size()) {
    const uint64_t size = LittleEndian32(file.substr(at + 4, 4));
    const uint64_t begin = at + kChunkHeaderBytes;
    if (size > file.size() - begin) break;
    if (file.substr(at, 4) == name) return file.substr(begin, size);
    at = begin + size + size % 2;
  }
  return {};
}

// Returns the orientation in the file's EXIF data; 1 if its header announces none. Like libwebp's
// own demuxer, it ignores EXIF data that the header does not announce.
int OrientationOf(std::string_view file) {
  constexpr char kExifFlag = 0x08;
  const std::string_view header = FindChunk(file, "VP8X");
  if (header.empty() || (header.front() & kExifFlag) == 0) return 1;
  return ExifOrientation(FindChunk(file, "EXIF"));
}

absl::Status Broken(std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("is a broken WebP file: ", absl::string_view(why.data(), why.size())));
}

absl::Status ToStatus(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OK:
      return absl::OkStatus();
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return Broken("it is cut off");
    case VP8_STATUS_OUT_OF_MEMORY:
      return Broken("out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Broken("it has a feature that is not supported");
    default:
      return Broken("its data is damaged");
  }
}

}  // namespace

absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const ImageLimits& limits) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("RIFF")) {
    return Broken("it does not begin with RIFF");
  }
  const uint64_t whole = uint64_t{LittleEndian32(bytes.substr(4, 4))} + kChunkHeaderBytes;
  // libwebp would take pixels that are complete without what follows them, such as the orientation.
  if (whole > bytes.size()) return Broken("it is cut off");
  bytes = bytes.substr(0, whole);

  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return Broken("libwebp has another version");
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (absl::Status status = ToStatus(WebPGetFeatures(data, bytes.size(), &config.input));
      !status.ok()) {
    return status;
  }
  const WebPBitstreamFeatures& features = config.input;
  if (absl::Status status = CheckImageSize(features.width, features.height, limits); !status.ok()) {
    return status;
  }
  if (features.has_animation != 0) {
    return absl::InvalidArgumentError(
        "is an animated WebP file; must be a still image, for example its first frame");
  }

  StoredImage image;
  image.width = features.width;
  image.height = features.height;
  image.channels = features.has_alpha != 0 ? 4 : 3;
  image.exif_orientation = OrientationOf(bytes);
  const size_t row_bytes = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  config.output.colorspace = image.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), static_cast<int>(row_bytes), image.pixels.size()};
  const absl::Status status = ToStatus(WebPDecode(data, bytes.size(), &config));
  WebPFreeDecBuffer(&config.output);
  if (!status.ok()) return status;
  return image;
}

}  // namespace wan
