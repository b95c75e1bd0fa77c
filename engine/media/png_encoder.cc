#include <png.h>

#include "absl/strings/str_cat.h"
#include "engine/media/image_encode.h"

namespace wan {

absl::StatusOr<std::string> EncodePng(std::span<const uint8_t> rgb24, int width, int height) {
  if (absl::Status status = CheckPixels(rgb24, width, height); !status.ok()) return status;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&image, file.data(), &size, 0, rgb24.data(), 0, nullptr) == 0) {
    return absl::InternalError(absl::StrCat("cannot encode a PNG: ", image.message));
  }
  file.resize(size);
  return file;
}

}  // namespace wan
