#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/media/exif.h"
#include "engine/media/image_decoders.h"
#include "engine/media/jpeg.h"

namespace wan {
namespace {

// In a progressive file, each scan costs a pass over the picture. Encoders write about ten scans,
// 16 at most. Pictures of up to 16 megapixels may have 100 scans, the largest pictures 25.
constexpr int kMaxScans = 100;
constexpr int64_t kMaxScannedPixels = 1'600'000'000;

int MaxScans(const jpeg_decompress_struct& cinfo) {
  const int64_t pixels = int64_t{cinfo.image_width} * cinfo.image_height;
  return static_cast<int>(std::min<int64_t>(kMaxScans, kMaxScannedPixels / pixels));
}

class JpegReader {
 public:
  // After a stop request on `stop`, which must outlive the reader, the functions that read pixels
  // fail.
  explicit JpegReader(const std::stop_token* stop = nullptr) : stop_(stop) {
    cinfo_.err = errors_.Install();
    cinfo_.client_data = this;
    progress_.progress_monitor = OnProgress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&cinfo_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Reads the file up to its first scan, and chooses the form of the output. If the function
  // returns false, message() has the reason.
  bool ReadHeader(std::string_view bytes) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_decompress(&cinfo_);
    cinfo_.progress = &progress_;
    jpeg_mem_src(&cinfo_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_set_marker_processor(&cinfo_, JPEG_APP0 + 1, OnApp1);
    jpeg_read_header(&cinfo_, TRUE);
    // libjpeg cannot convert the four inks of CMYK to RGB, so the caller converts the inks
    // afterwards.
    const bool inks = cinfo_.jpeg_color_space == JCS_CMYK || cinfo_.jpeg_color_space == JCS_YCCK;
    cinfo_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    return true;
  }

  // Selects decoding at an eighth of the size: libjpeg then reads all data, but transforms few.
  // Call it before StartPixels.
  void ChooseEighth() {
    cinfo_.scale_num = 1;
    cinfo_.scale_denom = 8;
    cinfo_.do_block_smoothing = FALSE;
  }

  // `row` must have room for output_width() * 3 bytes, or * 4 for inks. Call ReadRow once for each
  // row, from top to bottom.
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
  // Call output_width and output_height only after StartPixels.
  int output_width() const { return static_cast<int>(cinfo_.output_width); }
  int output_height() const { return static_cast<int>(cinfo_.output_height); }
  // Returns the first EXIF segment before the first scan; empty if there is none.
  std::string_view exif() const { return exif_; }
  // Returns the bytes of all coefficients. libjpeg keeps them if there are several scans.
  int64_t CoefficientBytes() const;
  const char* message() const { return errors_.message; }

 private:
  // Reads an APP1 segment in place, which is possible because libjpeg's memory source has the whole
  // file in its buffer. If the file consisted of empty segments, libjpeg's own list of copies would
  // take many times the file's memory, and time that grows with the square of their number.
  static boolean OnApp1(j_decompress_ptr cinfo);

  static void OnProgress(j_common_ptr common);

  const std::stop_token* const stop_;
  std::string_view exif_;
  jpeg_decompress_struct cinfo_{};
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
};

void JpegReader::OnProgress(j_common_ptr common) {
  const auto& cinfo = *reinterpret_cast<j_decompress_ptr>(common);
  const auto& reader = *static_cast<const JpegReader*>(cinfo.client_data);
  auto& errors = *reinterpret_cast<JpegErrors*>(common->err);
  if (reader.stop_ != nullptr && reader.stop_->stop_requested()) errors.Fail("stopped");
  const int most = MaxScans(cinfo);
  if (cinfo.input_scan_number <= most) return;
  char reason[JMSG_LENGTH_MAX];
  std::snprintf(reason, sizeof reason,
                "it has more than %d scans, too many for %ux%u pixels; save it as a baseline JPEG",
                most, cinfo.image_width, cinfo.image_height);
  errors.Fail(reason);
}

int64_t JpegReader::CoefficientBytes() const {
  if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&cinfo_)) == FALSE) return 0;
  int64_t blocks = 0;
  for (int i = 0; i < cinfo_.num_components; ++i) {
    blocks += int64_t{cinfo_.comp_info[i].width_in_blocks} * cinfo_.comp_info[i].height_in_blocks;
  }
  return blocks * static_cast<int64_t>(sizeof(JBLOCK));
}

boolean JpegReader::OnApp1(j_decompress_ptr cinfo) {
  auto& reader = *static_cast<JpegReader*>(cinfo->client_data);
  jpeg_source_mgr& source = *cinfo->src;
  const std::string_view rest(reinterpret_cast<const char*>(source.next_input_byte),
                              source.bytes_in_buffer);
  constexpr size_t kLengthBytes = 2;  // the length includes its own two bytes
  if (rest.size() < kLengthBytes) reader.errors_.Fail("it is cut off");
  const size_t length = std::max<size_t>(
      static_cast<uint8_t>(rest[0]) << 8 | static_cast<uint8_t>(rest[1]), kLengthBytes);
  if (length > rest.size()) reader.errors_.Fail("it is cut off");
  const std::string_view segment = rest.substr(kLengthBytes, length - kLengthBytes);
  if (reader.exif_.empty() && segment.starts_with("Exif")) reader.exif_ = segment;
  source.next_input_byte += length;
  source.bytes_in_buffer -= length;
  return TRUE;
}

// Returns a * b / 255, rounded.
int MultiplyBytes(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Converts inks to RGB as Pillow does. Inks count as inverted (255 is blank paper): Adobe's
// programs write them so, and viewers read all CMYK files so.
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

absl::StatusOr<StoredHeader> MeasureJpeg(std::string_view bytes) {
  JpegReader reader;
  if (!reader.ReadHeader(bytes)) return Broken(reader);
  StoredHeader header;
  header.width = reader.width();
  header.height = reader.height();
  header.exif_orientation = ExifOrientation(reader.exif());
  header.grey = reader.is_grey();
  header.working_bytes = reader.CoefficientBytes();
  return header;
}

absl::StatusOr<bool> CheckJpeg(std::string_view bytes) {
  JpegReader reader;
  if (!reader.ReadHeader(bytes)) return Broken(reader);
  reader.ChooseEighth();
  if (!reader.StartPixels()) return Broken(reader);
  std::vector<uint8_t> row(static_cast<size_t>(reader.output_width()) * 4);
  for (int y = 0; y < reader.output_height(); ++y) {
    if (!reader.ReadRow(row.data())) return Broken(reader);
  }
  if (!reader.FinishPixels()) return Broken(reader);
  return false;
}

absl::StatusOr<StoredImage> DecodeJpeg(std::string_view bytes, const std::stop_token& stop) {
  JpegReader reader(&stop);
  if (!reader.ReadHeader(bytes) || !reader.StartPixels()) return Broken(reader);
  const int width = reader.width();
  const int height = reader.height();
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  StoredImage image;
  image.width = width;
  image.height = height;
  image.pixels.resize(row_bytes * static_cast<size_t>(height));
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
