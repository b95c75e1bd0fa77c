// Measuring and checking pictures: they agree with decoding, and cost what their headers promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "engine/media/image_decode.h"
#include "engine/media/image_encode.h"
#include "tests/engine/media/image_files.h"

namespace wan {
namespace {

using testing::HasSubstr;

constexpr Color kBackground = {32, 96, 160};

// The most memory that the process has held.
int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmHWM:") continue;
  int64_t kib = 0;
  status >> kib;
  return kib * 1024;
}

// Compares what three ways say about a file. Damaged pixels are the checks' matter alone.
void ExpectOneVerdict(const std::string& file, const std::string& name) {
  const ImageLimits limits = {.max_pixels = 1 << 20};
  const auto decoded = DecodeImage(file, kBackground, limits);
  const auto checked = CheckImage(file, kBackground, limits);
  const auto measured = MeasureImage(file, limits);
  ASSERT_EQ(checked.status(), decoded.status()) << name;
  if (!decoded.ok()) {
    EXPECT_TRUE(measured.ok() || measured.status() == decoded.status())
        << name << measured.status();
    return;
  }
  EXPECT_EQ(*checked, decoded->facts) << name;
  ASSERT_TRUE(measured.ok()) << name << measured.status();
  InputImage known = decoded->facts;
  known.blended_over.reset();
  EXPECT_EQ(measured->facts, known) << name;
  EXPECT_GE(measured->decoding_bytes, static_cast<int64_t>(decoded->image.pixels.size())) << name;
}

TEST(CheckImage, SaysWhatDecodingSays) {
  for (const std::string& name : DecodableNames()) ExpectOneVerdict(FileOf(name), name);
  for (const auto& [name, tensor] : Broken()) ExpectOneVerdict(tensor.bytes, name);
}

TEST(CheckImage, SaysWhatDecodingSaysOfEveryTruncation) {
  for (const char* name :
       {"png/rgb8_many_chunks", "png/palette4_interlaced", "jpeg/420", "jpeg/420_progressive",
        "webp/lossy_opacity", "webp/exif_of_lossy", "png/exif_after_pixels"}) {
    const std::string& file = FileOf(name);
    for (size_t size = 0; size < file.size(); ++size) {
      ExpectOneVerdict(file.substr(0, size), name + std::to_string(size));
    }
  }
}

TEST(CheckImage, SaysWhatDecodingSaysOfDamage) {
  std::mt19937 random(1);
  for (const std::string& name : DecodableNames()) {
    for (int round = 0; round < 40; ++round) {
      std::string damaged = FileOf(name);
      const int places = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < places; ++i) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      ExpectOneVerdict(damaged, name);
    }
  }
}

// Measuring cannot read a pixel of these files, because they have none.
TEST(MeasureImage, ReadsNoPixel) {
  // A VP8 frame's header: key frame, start code, 8000x8000.
  const std::string frame("\x10\0\0\x9d\x01\x2a\x40\x1f\x40\x1f", 10);
  const std::map<std::string, std::string> files = {
      {"PNG", PngOf(8000, 8000, 16, 2, false, "no pixels")},
      {"JPEG", ProgressiveJpegHeader(8000, 8000, 1, 1) + GreyScan(0) + "\xff\xd9"},
      {"WebP", std::string("RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0", 20) + frame},
  };
  for (const auto& [format, file] : files) {
    const auto measured = MeasureImage(file);
    ASSERT_TRUE(measured.ok()) << format << measured.status();
    EXPECT_EQ(measured->facts.format, format);
    EXPECT_EQ(measured->facts.width, 8000) << format;
    EXPECT_EQ(measured->facts.height, 8000) << format;
    EXPECT_THAT(std::string(CheckImage(file).status().message()),
                HasSubstr("is a broken " + format + " file: "));
  }
}

// libjpeg's own list of segments would take a time that is quadratic in their number.
TEST(MeasureImage, WalksOverSegmentsOnce) {
  std::string jpeg = *EncodeJpeg(std::vector<uint8_t>(20 * 10 * 3), 20, 10);
  const std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
                         32);
  std::string segments;
  for (int i = 0; i < 1'000'000; ++i) segments += JpegSegment(0xe1, "");
  jpeg.insert(2, segments + JpegSegment(0xe1, exif));
  EXPECT_EQ(MeasureImage(jpeg)->facts.exif_orientation, 6);
  EXPECT_EQ(CheckImage(jpeg)->width, 10);
}

// An eighth of the pixels' bytes would not fit.
TEST(CheckImage, KeepsNoPixelsOfAPng) {
  constexpr int kSide = 2400;
  for (const bool interlaced : {false, true}) {
    std::string rows;
    constexpr int kPixelBytes = 8;  // 16 bits, with opacity
    if (interlaced) {
      constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
      size_t bytes = 0;
      for (const auto& [x, y, across, down] : kPasses) {
        const size_t columns = (kSide - x + across - 1) / across;
        bytes += (1 + columns * kPixelBytes) * ((kSide - y + down - 1) / down);
      }
      rows.resize(bytes);
    } else {
      rows.resize(size_t{kSide} * (1 + kSide * kPixelBytes));
    }
    std::string packed(compressBound(rows.size()), '\0');
    uLongf packed_bytes = packed.size();
    ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(packed.data()), &packed_bytes,
                        reinterpret_cast<const Bytef*>(rows.data()), rows.size(), 1),
              Z_OK);
    packed.resize(packed_bytes);
    const std::string png = PngOf(kSide, kSide, 16, 6, interlaced, packed);

    std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins at what is held now
    const int64_t before = PeakBytes();
    const auto checked = CheckImage(png, kBackground);
    ASSERT_TRUE(checked.ok()) << checked.status();
    EXPECT_EQ(checked->blended_over, kBackground);
    EXPECT_LT(PeakBytes() - before, int64_t{kSide} * kSide * kPixelBytes / 8);
  }
}

// Sixteen scans are more than encoders write.
TEST(CheckImage, AllowsAJpegScansByItsSize) {
  const auto jpeg = [](int side, int scans) {
    const int64_t blocks = int64_t{side / 8} * (side / 8);
    std::string file = ProgressiveJpegHeader(side, side, 1, 1) + GreyScan(blocks);
    for (int i = 1; i < scans; ++i) file += EmptyScan(blocks);
    return file + "\xff\xd9";
  };
  EXPECT_TRUE(CheckImage(jpeg(4000, 100)).ok()) << CheckImage(jpeg(4000, 100)).status();
  EXPECT_TRUE(CheckImage(jpeg(8000, 25)).ok()) << CheckImage(jpeg(8000, 25)).status();
  for (const auto& [side, most] : {std::pair(4000, 100), {8000, 25}}) {
    const std::string file = jpeg(side, most + 1);
    const std::string pixels = std::to_string(side) + "x" + std::to_string(side);
    EXPECT_EQ(std::string(CheckImage(file).status().message()),
              "is a broken JPEG file: it has more than " + std::to_string(most) +
                  " scans, too many for " + pixels + " pixels; save it as a baseline JPEG");
  }
}

TEST(MeasureImage, RefusesAJpegWhoseCoefficientsNeedTooMuchMemory) {
  const auto header = [](int width, int height, int components, int sampling) {
    return MeasureImage(ProgressiveJpegHeader(width, height, components, sampling) +
                        JpegSegment(0xda, std::string_view("\1\1\0\0\0\0", 6)));
  };
  EXPECT_TRUE(header(8000, 6000, 3, 1).ok());  // full chroma
  EXPECT_TRUE(header(8000, 8000, 3, 2).ok());  // 4:2:0
  EXPECT_EQ(header(8000, 8000, 3, 2)->decoding_bytes, 8000 * 8000 * (3 + 3));
  EXPECT_EQ(std::string(header(8000, 8000, 3, 1).status().message()),
            "needs 366 MiB to be decoded, because it is a JPEG of 8000x8000 pixels in several "
            "scans; must need at most 300: save it as a baseline JPEG, with fewer pixels or with "
            "4:2:0 chroma");
}

}  // namespace
}  // namespace wan
