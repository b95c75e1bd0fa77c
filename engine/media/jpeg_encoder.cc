#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "engine/media/image_encode.h"
#include "engine/media/jpeg.h"

namespace wan {
namespace {

// Encodes with libjpeg. The destructor frees all memory, including the result's.
class JpegWriter {
 public:
  JpegWriter() { cinfo_.err = errors_.Install(); }
  ~JpegWriter() {
    jpeg_destroy_compress(&cinfo_);
    std::free(bytes_);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  bool Write(const uint8_t* rgb24, int width, int height, int quality) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_compress(&cinfo_);
    jpeg_mem_dest(&cinfo_, &bytes_, &size_);
    cinfo_.image_width = static_cast<JDIMENSION>(width);
    cinfo_.image_height = static_cast<JDIMENSION>(height);
    cinfo_.input_components = 3;
    cinfo_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&cinfo_);
    jpeg_set_quality(&cinfo_, quality, TRUE);
    jpeg_start_compress(&cinfo_, TRUE);
    while (cinfo_.next_scanline < cinfo_.image_height) {
      // Casting const away is safe, because libjpeg does not write to the memory.
      JSAMPROW row = const_cast<uint8_t*>(rgb24) +
                     static_cast<size_t>(cinfo_.next_scanline) * cinfo_.image_width * 3;
      jpeg_write_scanlines(&cinfo_, &row, 1);
    }
    jpeg_finish_compress(&cinfo_);
    return true;
  }

  std::string bytes() const { return std::string(reinterpret_cast<const char*>(bytes_), size_); }
  const char* message() const { return errors_.message; }

 private:
  jpeg_compress_struct cinfo_{};
  JpegErrors errors_{};
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(std::span<const uint8_t> rgb24, int width, int height,
                                       int quality) {
  if (absl::Status status = CheckPixels(rgb24, width, height); !status.ok()) return status;
  if (quality < 1 || quality > 100) {
    return absl::InvalidArgumentError(
        absl::StrCat("quality is ", quality, "; must be from 1 to 100"));
  }
  JpegWriter writer;
  if (!writer.Write(rgb24.data(), width, height, quality)) {
    return absl::InternalError(absl::StrCat("cannot encode a JPEG: ", writer.message()));
  }
  return writer.bytes();
}

}  // namespace wan
