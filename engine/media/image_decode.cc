#include "engine/media/image_decode.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/media/jpeg_decoder.h"
#include "engine/media/png_decoder.h"
#include "engine/media/stored_image.h"
#include "engine/media/webp_decoder.h"

namespace wan {
namespace {

using namespace std::string_view_literals;

struct ImageFormat {
  std::string_view name;
  std::string_view signature;  // the file's first bytes
  size_t offset;               // of the signature
  absl::StatusOr<StoredImage> (*decode)(std::string_view bytes,
                                        const ImageLimits& limits);  // or null
};

// Those without a decoder are here for a better message.
constexpr ImageFormat kFormats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n"sv, 0, DecodePng},
    {"JPEG", "\xff\xd8\xff"sv, 0, DecodeJpeg},
    {"WebP", "WEBP"sv, 8, DecodeWebp},
    {"GIF", "GIF8"sv, 0, nullptr},
    {"AVIF", "ftypavi"sv, 4, nullptr},
    {"HEIF", "ftyphei"sv, 4, nullptr},
    {"HEIF", "ftypmif1"sv, 4, nullptr},
    {"a video", "ftyp"sv, 4, nullptr},
    {"JPEG XL", "\xff\x0a"sv, 0, nullptr},
    {"JPEG XL", "JXL "sv, 4, nullptr},
    {"BMP", "BM"sv, 0, nullptr},
    {"TIFF", "II*\0"sv, 0, nullptr},
    {"TIFF", "MM\0*"sv, 0, nullptr},
};

}  // namespace

absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background,
                                         const ImageLimits& limits) {
  if (bytes.empty())
    return absl::InvalidArgumentError("is empty; must be a PNG, JPEG or WebP file");
  if (static_cast<int64_t>(bytes.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes; must have at most ", limits.max_bytes));
  }
  for (const ImageFormat& format : kFormats) {
    if (bytes.size() < format.offset ||
        !bytes.substr(format.offset).starts_with(format.signature)) {
      continue;
    }
    const std::string name(format.name);
    if (format.decode == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("is ", name, "; must be PNG, JPEG or WebP"));
    }
    absl::StatusOr<StoredImage> stored = format.decode(bytes, limits);
    if (!stored.ok()) return stored.status();
    DecodedImage decoded;
    decoded.facts.format = name;
    decoded.facts.exif_orientation = stored->exif_orientation;
    decoded.facts.bits_per_sample = stored->bits_per_sample;
    decoded.facts.grey = stored->grey;
    BlendedImage blended = Blend(*std::move(stored), background);
    if (blended.had_transparency) decoded.facts.blended_over = background;
    decoded.image = Turn(std::move(blended.image), decoded.facts.exif_orientation);
    decoded.facts.width = decoded.image.width;
    decoded.facts.height = decoded.image.height;
    return decoded;
  }
  const std::string foreign =
      NameForeignContent(bytes.substr(0, kForeignContentBytes), FileContent::kImage);
  return absl::InvalidArgumentError(absl::StrCat(foreign.empty() ? "is not an image file" : foreign,
                                                 "; must be PNG, JPEG or WebP"));
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
