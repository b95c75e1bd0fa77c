#include "engine/media/png_decoder.h"

#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"

namespace wan {
namespace {

constexpr png_byte kExifChunk[] = "eXIf";

struct ByteSource {
  std::string_view bytes;
  size_t offset = 0;
};

// Reads one file. libpng reports a fatal error by a jump, so every function here that calls into it
// begins with setjmp and keeps no object with a destructor on its stack.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : source_{bytes} {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads up to the pixels. False: see message().
  bool ReadHeader();

  // Sets the form of the pixels: 8 bits, red, green and blue, and opacity where the file has any.
  bool ChooseOutput();

  // `rows` holds all rows without padding.
  bool ReadPixels(uint8_t* rows);

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  // Of the pixels; call it after ChooseOutput.
  int channels() const { return png_get_channels(png_, info_); }
  // A palette's colours have 8 bits, however few its indexes have.
  int bits_per_sample() const {
    return is_palette() ? 8 : static_cast<int>(png_get_bit_depth(png_, info_));
  }
  bool is_grey() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0; }
  // The first eXIf chunk, which may come after the pixels; empty if there is none. Only chunks of
  // this kind are kept.
  std::string_view exif() const {
    png_unknown_chunkp chunk = nullptr;
    if (png_get_unknown_chunks(png_, info_, &chunk) == 0) return {};
    return {reinterpret_cast<const char*>(chunk->data), chunk->size};
  }
  const char* message() const { return message_; }

 private:
  bool is_palette() const { return png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE; }

  static void OnRead(png_structp png, png_bytep out, size_t size);
  static void OnError(png_structp png, png_const_charp message);
  static void OnWarning(png_structp, png_const_charp) {}

  ByteSource source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char message_[128] = "out of memory";
};

void PngReader::OnRead(png_structp png, png_bytep out, size_t size) {
  ByteSource& source = *static_cast<ByteSource*>(png_get_io_ptr(png));
  if (source.bytes.size() - source.offset < size) png_error(png, "it is cut off");
  std::memcpy(out, source.bytes.data() + source.offset, size);
  source.offset += size;
}

void PngReader::OnError(png_structp png, png_const_charp message) {
  PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader.message_, message, sizeof reader.message_ - 1);
  png_longjmp(png, 1);
}

bool PngReader::ReadHeader() {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
  if (png_ == nullptr) return false;
  info_ = png_create_info_struct(png_);
  if (info_ == nullptr) return false;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_set_read_fn(png_, &source_, OnRead);
  // CheckImageSize judges the size, with a message of ours.
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  // Texts and profiles may unfold a thousandfold, and no pixel depends on them.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  // libpng would leave out EXIF data that begins with "Exif", as some programs write it.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, kExifChunk, 1);
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png_, info_);
  return true;
}

bool PngReader::ChooseOutput() {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  // Palettes become RGB, grey of 1, 2 and 4 bits becomes 8, transparent colours become opacity.
  png_set_expand(png_);
  png_set_gray_to_rgb(png_);
  png_set_scale_16(png_);  // v / 257, rounded
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngReader::ReadPixels(uint8_t* rows) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  const int passes = png_set_interlace_handling(png_);
  const png_uint_32 height = png_get_image_height(png_, info_);
  const size_t row_bytes = png_get_rowbytes(png_, info_);
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png_, rows + y * row_bytes, nullptr);
  }
  png_read_end(png_, info_);
  return true;
}

}  // namespace

absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const ImageLimits& limits) {
  PngReader reader(bytes);
  const auto broken = [&] {
    return absl::InvalidArgumentError(absl::StrCat("is a broken PNG file: ", reader.message()));
  };
  if (!reader.ReadHeader()) return broken();
  const int64_t width = reader.width();
  const int64_t height = reader.height();
  if (absl::Status status = CheckImageSize(width, height, limits); !status.ok()) return status;
  StoredImage image;
  image.width = static_cast<int>(width);
  image.height = static_cast<int>(height);
  image.bits_per_sample = reader.bits_per_sample();
  image.grey = reader.is_grey();
  if (!reader.ChooseOutput()) return broken();
  image.channels = reader.channels();
  image.pixels.resize(static_cast<size_t>(width * height) * static_cast<size_t>(image.channels));
  if (!reader.ReadPixels(image.pixels.data())) return broken();
  image.exif_orientation = ExifOrientation(reader.exif());
  return image;
}

}  // namespace wan
