#include "engine/media/image_decode.h"

#include "absl/strings/str_cat.h"
#include "engine/media/jpeg_decoder.h"
#include "engine/media/png_decoder.h"

namespace wan {
namespace {

using namespace std::string_view_literals;

struct ImageFormat {
  std::string_view name;
  std::string_view signature;  // the file's first bytes
  size_t offset;               // of the signature
  absl::StatusOr<RgbImage> (*decode)(std::string_view bytes, const ImageLimits& limits);  // or null
};

// Those without a decoder are here for a better message.
constexpr ImageFormat kFormats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n"sv, 0, DecodePng},
    {"JPEG", "\xff\xd8\xff"sv, 0, DecodeJpeg},
    {"GIF", "GIF8"sv, 0, nullptr},
    {"WebP", "WEBP"sv, 8, nullptr},
    {"AVIF or HEIF", "ftyp"sv, 4, nullptr},
    {"BMP", "BM"sv, 0, nullptr},
    {"TIFF", "II*\0"sv, 0, nullptr},
    {"TIFF", "MM\0*"sv, 0, nullptr},
};

}  // namespace

absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, const ImageLimits& limits) {
  if (bytes.empty()) return absl::InvalidArgumentError("is empty; must be a PNG or JPEG file");
  if (static_cast<int64_t>(bytes.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes; at most ", limits.max_bytes));
  }
  for (const ImageFormat& format : kFormats) {
    if (bytes.size() < format.offset ||
        !bytes.substr(format.offset).starts_with(format.signature)) {
      continue;
    }
    if (format.decode != nullptr) return format.decode(bytes, limits);
    return absl::InvalidArgumentError(absl::StrCat(
        "is ", absl::string_view(format.name.data(), format.name.size()), "; must be PNG or JPEG"));
  }
  return absl::InvalidArgumentError("is not an image file; must be PNG or JPEG");
}

absl::Status CheckImageSize(int64_t width, int64_t height, const ImageLimits& limits) {
  const bool sides_fit =
      width >= 1 && width <= kMaxImageSide && height >= 1 && height <= kMaxImageSide;
  if (sides_fit && width * height <= limits.max_pixels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is ", width, "x", height,
                                                 " pixels; sides must be from 1 to ", kMaxImageSide,
                                                 ", with at most ", limits.max_pixels, " pixels"));
}

}  // namespace wan
