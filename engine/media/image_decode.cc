#include "engine/media/image_decode.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/media/image_decoders.h"
#include "engine/media/stored_image.h"

namespace wan {
namespace {

using namespace std::string_view_literals;

struct ImageFormat {
  std::string_view name;
  std::string_view signature;  // the bytes of the signature
  size_t offset;               // where the signature is in the file
  // Null if the format is not supported.
  absl::StatusOr<StoredHeader> (*measure)(std::string_view bytes) = nullptr;
  absl::StatusOr<bool> (*check)(std::string_view bytes) = nullptr;
  absl::StatusOr<StoredImage> (*decode)(std::string_view bytes,
                                        const std::stop_token& stop) = nullptr;
};

// The list includes formats that cannot be decoded, so that messages can name them.
constexpr ImageFormat kFormats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n"sv, 0, MeasurePng, CheckPng, DecodePng},
    {"JPEG", "\xff\xd8\xff"sv, 0, MeasureJpeg, CheckJpeg, DecodeJpeg},
    {"WebP", "WEBP"sv, 8, MeasureWebp, CheckWebp, DecodeWebp},
    {"GIF", "GIF8"sv, 0},
    {"AVIF", "ftypavi"sv, 4},
    {"HEIF", "ftyphei"sv, 4},
    {"HEIF", "ftypmif1"sv, 4},
    {"a video", "ftyp"sv, 4},
    {"JPEG XL", "\xff\x0a"sv, 0},
    {"JPEG XL", "JXL "sv, 4},
    {"BMP", "BM"sv, 0},
    {"TIFF", "II*\0"sv, 0},
    {"TIFF", "MM\0*"sv, 0},
};

// Returns the format of the file; an error if the format is unknown or not supported.
absl::StatusOr<const ImageFormat*> FindFormat(std::string_view bytes) {
  for (const ImageFormat& format : kFormats) {
    if (bytes.size() < format.offset ||
        !bytes.substr(format.offset).starts_with(format.signature)) {
      continue;
    }
    if (format.decode != nullptr) return &format;
    return absl::InvalidArgumentError(
        absl::StrCat("is ", std::string(format.name), "; must be PNG, JPEG or WebP"));
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

// Only JPEG files with several scans come near the limit.
absl::Status CheckWorkingMemory(const StoredHeader& header, const ImageLimits& limits) {
  if (header.working_bytes <= limits.max_working_bytes) return absl::OkStatus();
  constexpr int64_t kMiB = 1 << 20;
  return absl::InvalidArgumentError(
      absl::StrCat("needs ", header.working_bytes / kMiB,
                   " MiB to be decoded, because it is a JPEG of ", header.width, "x", header.height,
                   " pixels in several scans; must need at most ", limits.max_working_bytes / kMiB,
                   ": save it as a baseline JPEG, with fewer pixels or with 4:2:0 chroma"));
}

// Describes a file that is within all limits and whose format can be decoded.
struct Measured {
  const ImageFormat* format;
  StoredHeader header;
  InputImage facts;  // complete except for `blended_over`
};

absl::StatusOr<Measured> Measure(std::string_view bytes, const ImageLimits& limits) {
  if (bytes.empty())
    return absl::InvalidArgumentError("is empty; must be a PNG, JPEG or WebP file");
  if (static_cast<int64_t>(bytes.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes; must have at most ", limits.max_bytes));
  }
  const absl::StatusOr<const ImageFormat*> format = FindFormat(bytes);
  if (!format.ok()) return format.status();
  const absl::StatusOr<StoredHeader> header = (*format)->measure(bytes);
  if (!header.ok()) return header.status();
  absl::Status status = CheckImageSize(header->width, header->height, limits);
  if (status.ok()) status = CheckWorkingMemory(*header, limits);
  if (!status.ok()) return status;
  Measured measured{*format, *header, {}};
  InputImage& facts = measured.facts;
  facts.format = std::string((*format)->name);
  facts.width = header->width;
  facts.height = header->height;
  if (ExchangesSides(header->exif_orientation)) std::swap(facts.width, facts.height);
  facts.exif_orientation = header->exif_orientation;
  facts.bits_per_sample = header->bits_per_sample;
  facts.grey = header->grey;
  return measured;
}

}  // namespace

absl::StatusOr<MeasuredImage> MeasureImage(std::string_view bytes, const ImageLimits& limits) {
  const absl::StatusOr<Measured> measured = Measure(bytes, limits);
  if (!measured.ok()) return measured.status();
  const StoredHeader& header = measured->header;
  const int64_t pixels = int64_t{header.width} * header.height;
  // Memory is highest at one of three moments: when the decoder works (its memory plus the stored
  // pixels), during blending (stored and blended pixels), and during rotation (pixels before and
  // after).
  int64_t most = header.working_bytes + pixels * header.channels;
  if (header.channels == 4) most = std::max(most, pixels * (4 + 3));
  if (header.exif_orientation != 1) most = std::max(most, pixels * (3 + 3));
  return MeasuredImage{measured->facts, most};
}

absl::StatusOr<InputImage> CheckImage(std::string_view bytes, const Color& background,
                                      const ImageLimits& limits) {
  absl::StatusOr<Measured> measured = Measure(bytes, limits);
  if (!measured.ok()) return measured.status();
  const absl::StatusOr<bool> transparent = measured->format->check(bytes);
  if (!transparent.ok()) return transparent.status();
  if (*transparent) measured->facts.blended_over = background;
  return std::move(measured->facts);
}

absl::StatusOr<DecodedImage> DecodeImage(std::string_view bytes, const Color& background,
                                         const ImageLimits& limits, const std::stop_token& stop) {
  absl::StatusOr<Measured> measured = Measure(bytes, limits);
  if (!measured.ok()) return measured.status();
  absl::StatusOr<StoredImage> stored = measured->format->decode(bytes, stop);
  if (stop.stop_requested()) return absl::CancelledError("stopped while the image was decoded");
  if (!stored.ok()) return stored.status();
  BlendedImage blended = Blend(*std::move(stored), background);
  DecodedImage decoded;
  decoded.facts = std::move(measured->facts);
  if (blended.had_transparency) decoded.facts.blended_over = background;
  decoded.image = Turn(std::move(blended.image), decoded.facts.exif_orientation);
  return decoded;
}

}  // namespace wan
