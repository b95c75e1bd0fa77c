#include <webp/decode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"
#include "engine/media/image_decoders.h"

namespace wan {
namespace {

// A WebP file is a RIFF file: it consists of "RIFF", the number of bytes that follow, "WEBP", and
// chunks. A chunk consists of a name, a size, and that many bytes, padded to an even number.
constexpr size_t kHeaderBytes = 12;
constexpr size_t kChunkHeaderBytes = 8;

uint32_t LittleEndian32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Returns the content of the first chunk with this name; empty if there is none. `file` must have
// its complete header.
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

// Returns the orientation that the EXIF data states; 1 if the header does not announce EXIF data.
// EXIF data that is not announced is ignored, as libwebp's demuxer does.
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

// Describes a file whose headers are valid.
struct WebpFile {
  std::string_view bytes;  // the file up to the end that its header states
  WebPDecoderConfig config;

  int width() const { return config.input.width; }
  int height() const { return config.input.height; }
  int channels() const { return config.input.has_alpha != 0 ? 4 : 3; }
};

absl::StatusOr<WebpFile> ReadHeaders(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("RIFF")) {
    return Broken("it does not begin with RIFF");
  }
  const uint64_t whole = uint64_t{LittleEndian32(bytes.substr(4, 4))} + kChunkHeaderBytes;
  // Check this here, because libwebp accepts a file that is truncated after its pixels and lacks
  // chunks such as EXIF.
  if (whole > bytes.size()) return Broken("it is cut off");
  WebpFile file;
  file.bytes = bytes.substr(0, whole);
  if (WebPInitDecoderConfig(&file.config) == 0) return Broken("libwebp has another version");
  absl::Status status = ToStatus(WebPGetFeatures(
      reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size(), &file.config.input));
  if (!status.ok()) return status;
  if (file.config.input.has_animation != 0) {
    return absl::InvalidArgumentError(
        "is an animated WebP file; must be a still image, for example its first frame");
  }
  return file;
}

absl::Status Decode(WebpFile& file) {
  return ToStatus(WebPDecode(reinterpret_cast<const uint8_t*>(file.bytes.data()), file.bytes.size(),
                             &file.config));
}

}  // namespace

absl::StatusOr<StoredHeader> MeasureWebp(std::string_view bytes) {
  const absl::StatusOr<WebpFile> file = ReadHeaders(bytes);
  if (!file.ok()) return file.status();
  StoredHeader header;
  header.width = file->width();
  header.height = file->height();
  header.channels = file->channels();
  header.exif_orientation = OrientationOf(file->bytes);
  constexpr int kLossless = 2;
  const int64_t pixels = int64_t{header.width} * header.height;
  // For a lossless file, libwebp unpacks all pixels at once (4 bytes each); for other files, only
  // the opacity (2 bytes).
  header.working_bytes = file->config.input.format == kLossless ? pixels * 4
                         : header.channels == 4                 ? pixels * 2
                                                                : 0;
  return header;
}

absl::StatusOr<bool> CheckWebp(std::string_view bytes) {
  absl::StatusOr<WebpFile> file = ReadHeaders(bytes);
  if (!file.ok()) return file.status();
  WebPDecoderConfig& config = file->config;
  if (file->channels() == 3) {
    constexpr int kEighth = 8;
    config.output.colorspace = MODE_YUV;
    config.options.use_scaling = 1;
    config.options.scaled_width = (file->width() + kEighth - 1) / kEighth;
    config.options.scaled_height = (file->height() + kEighth - 1) / kEighth;
  } else {
    // MODE_YUVA needs the least memory of the output formats with opacity.
    config.output.colorspace = MODE_YUVA;
  }
  const absl::Cleanup free_output = [&] { WebPFreeDecBuffer(&config.output); };
  if (absl::Status status = Decode(*file); !status.ok()) return status;
  if (file->channels() == 3) return false;
  const WebPYUVABuffer& planes = config.output.u.YUVA;
  for (int y = 0; y < file->height(); ++y) {
    const uint8_t* const row = planes.a + ptrdiff_t{y} * planes.a_stride;
    if (std::any_of(row, row + file->width(), [](uint8_t a) { return a != kOpaque; })) return true;
  }
  return false;
}

// The call takes at most half a second, so it does not check whether a stop was requested.
absl::StatusOr<StoredImage> DecodeWebp(std::string_view bytes, const std::stop_token& /*stop*/) {
  absl::StatusOr<WebpFile> file = ReadHeaders(bytes);
  if (!file.ok()) return file.status();
  StoredImage image;
  image.width = file->width();
  image.height = file->height();
  image.channels = file->channels();
  const size_t row_bytes = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  WebPDecBuffer& output = file->config.output;
  output.colorspace = image.channels == 4 ? MODE_RGBA : MODE_RGB;
  output.is_external_memory = 1;
  output.u.RGBA = {image.pixels.data(), static_cast<int>(row_bytes), image.pixels.size()};
  const absl::Status status = Decode(*file);
  WebPFreeDecBuffer(&output);
  if (!status.ok()) return status;
  return image;
}

}  // namespace wan
