#include "engine/media/jpeg_decoder.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/jpeg.h"

namespace wan {
namespace {

// Each scan of a progressive file costs a pass over the whole picture; honest files have about ten.
constexpr int kMaxScans = 100;

void OnProgress(j_common_ptr cinfo) {
  if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number > kMaxScans) {
    reinterpret_cast<JpegErrors*>(cinfo->err)->Fail("it has more than 100 scans");
  }
}

class JpegReader {
 public:
  JpegReader() {
    cinfo_.err = errors_.Install();
    progress_.progress_monitor = OnProgress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&cinfo_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Reads up to the first scan and chooses the form of the output. False: see message().
  bool ReadHeader(std::string_view bytes) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_decompress(&cinfo_);
    cinfo_.progress = &progress_;
    jpeg_mem_src(&cinfo_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&cinfo_, TRUE);
    // Four inks become RGB afterwards; libjpeg does the rest.
    const bool inks = cinfo_.jpeg_color_space == JCS_CMYK || cinfo_.jpeg_color_space == JCS_YCCK;
    cinfo_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    return true;
  }

  // `row` holds width * channels() bytes; called once for each row, from the top.
  bool StartPixels() {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_start_decompress(&cinfo_);
    return true;
  }
  bool ReadRow(uint8_t* row) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_read_scanlines(&cinfo_, &row, 1);
    return !errors_.damaged;
  }
  bool FinishPixels() {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_finish_decompress(&cinfo_);
    return !errors_.damaged;
  }

  int width() const { return static_cast<int>(cinfo_.image_width); }
  int height() const { return static_cast<int>(cinfo_.image_height); }
  bool is_cmyk() const { return cinfo_.out_color_space == JCS_CMYK; }
  const char* message() const { return errors_.message; }

 private:
  jpeg_decompress_struct cinfo_{};
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
};

// a * b / 255, rounded.
int MultiplyBytes(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Pillow's conversion. The file holds inks inverted, 255 for none, as Adobe's programs write them.
void CmykRowToRgb(const uint8_t* inks, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, inks += 4, rgb += 3) {
    const int light = inks[3];
    for (int channel = 0; channel < 3; ++channel) {
      rgb[channel] = static_cast<uint8_t>(light - MultiplyBytes(255 - inks[channel], light));
    }
  }
}

absl::Status Broken(const JpegReader& reader) {
  return absl::InvalidArgumentError(absl::StrCat("is a broken JPEG file: ", reader.message()));
}

}  // namespace

absl::StatusOr<RgbImage> DecodeJpeg(std::string_view bytes, const ImageLimits& limits) {
  JpegReader reader;
  if (!reader.ReadHeader(bytes)) return Broken(reader);
  const int width = reader.width();
  const int height = reader.height();
  if (absl::Status status = CheckImageSize(width, height, limits); !status.ok()) return status;

  if (!reader.StartPixels()) return Broken(reader);
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  RgbImage image{width, height, std::vector<uint8_t>(row_bytes * static_cast<size_t>(height))};
  std::vector<uint8_t> inks(reader.is_cmyk() ? static_cast<size_t>(width) * 4 : 0);
  uint8_t* row = image.pixels.data();
  for (int y = 0; y < height; ++y, row += row_bytes) {
    if (!reader.ReadRow(reader.is_cmyk() ? inks.data() : row)) return Broken(reader);
    if (reader.is_cmyk()) CmykRowToRgb(inks.data(), width, row);
  }
  if (!reader.FinishPixels()) return Broken(reader);
  return image;
}

}  // namespace wan
