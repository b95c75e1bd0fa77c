#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"
#include "engine/media/image_decoders.h"

namespace wan {
namespace {

// Returns the content of the first eXIf chunk, which may stand after the pixels; empty if there is
// none. The function returns the content even if the chunk is damaged, because decoding refuses a
// file with a damaged chunk.
std::string_view FindExif(std::string_view file) {
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kChunkBytes = 12;  // bytes of length, name and checksum
  for (size_t at = kSignatureBytes; at + kChunkBytes <= file.size();) {
    const size_t length = png_get_uint_32(reinterpret_cast<png_const_bytep>(file.data() + at));
    const std::string_view name = file.substr(at + 4, 4);
    if (length > file.size() - at - kChunkBytes || name == "IEND") break;
    if (name == "eXIf") return file.substr(at + 8, length);
    at += kChunkBytes + length;
  }
  return {};
}

struct ByteSource {
  std::string_view bytes;
  size_t offset = 0;
};

// Reads one file. libpng reports fatal errors with longjmp. So every function that calls libpng
// begins with setjmp and has no object with a destructor on its stack.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : source_{bytes} {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the file up to its pixels. If the function returns false, message() has the reason.
  bool ReadHeader();

  // Chooses the output: 8-bit samples of red, green, blue and, if the file has opacity, opacity.
  bool ChooseOutput();

  // `rows` has room for all rows, without padding. Call ReadPixels only after ChooseOutput.
  bool ReadPixels(uint8_t* rows, const std::stop_token& stop);

  // Reads all pixels, and keeps none of them. If the file has no opacity, `row` is not used.
  // Otherwise `row` receives each row in the form that ReadPixels gives it, and must have room for
  // the longest row with four bytes per pixel. Sets `transparent` to true if any pixel is not
  // opaque.
  bool DropPixels(uint8_t* row, bool* transparent);

  // The size in pixels; each side fits into 31 bits.
  int width() const { return static_cast<int>(png_get_image_width(png_, info_)); }
  int height() const { return static_cast<int>(png_get_image_height(png_, info_)); }
  // The following functions describe the file. Call these functions before ChooseOutput.
  int channels() const { return has_opacity() ? 4 : 3; }
  // The colours of a palette have 8 bits, whatever the size of the indexes is.
  int bits_per_sample() const {
    return is_palette() ? 8 : static_cast<int>(png_get_bit_depth(png_, info_));
  }
  bool is_grey() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0; }
  // Returns whether pixels may be transparent.
  bool has_opacity() const {
    return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0 ||
           png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
  }
  const char* message() const { return message_; }

 private:
  // Sets all transformations of ChooseOutput except the order of interlaced rows.
  void ChooseSamples();
  // Reads one row for DropPixels.
  void DropRow(uint8_t* row, png_uint_32 width, bool* transparent);
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
  // Lifts libpng's limits: CheckImageSize checks the size, with a message of our own.
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  // Skip texts and profiles: no pixel depends on them, and decompressed they may be a thousand
  // times as large.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png_, info_);
  return true;
}

void PngReader::ChooseSamples() {
  // This call turns palettes into RGB, grey values of fewer than 8 bits into 8 bits, and
  // transparent colours into opacity.
  png_set_expand(png_);
  png_set_gray_to_rgb(png_);
  png_set_scale_16(png_);  // Scales 16-bit samples to v / 257, rounded.
}

bool PngReader::ChooseOutput() {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  ChooseSamples();
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngReader::ReadPixels(uint8_t* rows, const std::stop_token& stop) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  const int passes = png_set_interlace_handling(png_);
  const png_uint_32 height = png_get_image_height(png_, info_);
  const size_t row_bytes = png_get_rowbytes(png_, info_);
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) {
      if (stop.stop_requested()) return false;
      png_read_row(png_, rows + y * row_bytes, nullptr);
    }
  }
  png_read_end(png_, info_);
  return true;
}

void PngReader::DropRow(uint8_t* row, png_uint_32 width, bool* transparent) {
  png_read_row(png_, row, nullptr);
  if (row == nullptr) return;
  for (png_uint_32 x = 0; x < width; ++x) *transparent |= row[x * 4 + 3] != kOpaque;
}

bool PngReader::DropPixels(uint8_t* row, bool* transparent) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  if (row != nullptr) ChooseSamples();
  png_read_update_info(png_, info_);
  const png_uint_32 width = png_get_image_width(png_, info_);
  const png_uint_32 height = png_get_image_height(png_, info_);
  if (png_get_interlace_type(png_, info_) == PNG_INTERLACE_NONE) {
    for (png_uint_32 y = 0; y < height; ++y) DropRow(row, width, transparent);
  } else {
    // Here libpng does not merge the passes of an interlaced file, but returns the rows of each
    // pass.
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
      const png_uint_32 columns = PNG_PASS_COLS(width, pass);
      const png_uint_32 rows = columns == 0 ? 0 : PNG_PASS_ROWS(height, pass);
      for (png_uint_32 y = 0; y < rows; ++y) DropRow(row, columns, transparent);
    }
  }
  png_read_end(png_, info_);
  return true;
}

absl::Status Broken(const PngReader& reader) {
  return absl::InvalidArgumentError(absl::StrCat("is a broken PNG file: ", reader.message()));
}

}  // namespace

absl::StatusOr<StoredHeader> MeasurePng(std::string_view bytes) {
  PngReader reader(bytes);
  if (!reader.ReadHeader()) return Broken(reader);
  StoredHeader header;
  header.width = reader.width();
  header.height = reader.height();
  header.channels = reader.channels();
  header.exif_orientation = ExifOrientation(FindExif(bytes));
  header.bits_per_sample = reader.bits_per_sample();
  header.grey = reader.is_grey();
  return header;
}

absl::StatusOr<bool> CheckPng(std::string_view bytes) {
  PngReader reader(bytes);
  if (!reader.ReadHeader()) return Broken(reader);
  std::vector<uint8_t> row(reader.has_opacity() ? static_cast<size_t>(reader.width()) * 4 : 0);
  bool transparent = false;
  if (!reader.DropPixels(row.empty() ? nullptr : row.data(), &transparent)) return Broken(reader);
  return transparent;
}

absl::StatusOr<StoredImage> DecodePng(std::string_view bytes, const std::stop_token& stop) {
  PngReader reader(bytes);
  if (!reader.ReadHeader()) return Broken(reader);
  StoredImage image;
  image.width = reader.width();
  image.height = reader.height();
  image.channels = reader.channels();
  if (!reader.ChooseOutput()) return Broken(reader);
  image.pixels.resize(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) *
                      static_cast<size_t>(image.channels));
  if (!reader.ReadPixels(image.pixels.data(), stop)) return Broken(reader);
  return image;
}

}  // namespace wan
