#include "engine/media/jpeg_decoder.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"
#include "engine/media/jpeg.h"

namespace wan {
namespace {

// Each scan of a progressive file costs a pass over the whole picture; honest files have about ten.
constexpr int kMaxScans = 100;
constexpr unsigned kMaxSegmentBytes = 0xffff;

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
    jpeg_save_markers(&cinfo_, JPEG_APP0 + 1, kMaxSegmentBytes);
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
  bool is_grey() const { return cinfo_.jpeg_color_space == JCS_GRAYSCALE; }
  // The first segment of EXIF data; empty if there is none.
  std::string_view exif() const {
    for (jpeg_saved_marker_ptr marker = cinfo_.marker_list; marker != nullptr;
         marker = marker->next) {
      const std::string_view segment(reinterpret_cast<const char*>(marker->data),
                                     marker->data_length);
      if (segment.starts_with("Exif")) return segment;
    }
    return {};
  }
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

// Pillow's conversion. The file holds inks inverted, 255 for none, as Adobe's programs write them,
// and as viewers take every such file, also one without Adobe's mark.
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

absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const ImageLimits& limits) {
  JpegReader reader;
  if (!reader.ReadHeader(bytes)) return Broken(reader);
  const int width = reader.width();
  const int height = reader.height();
  if (absl::Status status = CheckImageSize(width, height, limits); !status.ok()) return status;

  if (!reader.StartPixels()) return Broken(reader);
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  StoredImage image;
  image.width = width;
  image.height = height;
  image.pixels.resize(row_bytes * static_cast<size_t>(height));
  image.exif_orientation = ExifOrientation(reader.exif());
  image.grey = reader.is_grey();
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
