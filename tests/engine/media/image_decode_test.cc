#include "engine/media/image_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stop_token>

#include "engine/media/image_encode.h"
#include "tests/engine/media/image_files.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Of <name>/over.
constexpr Color kBackground = {32, 96, 160};

std::string SafeName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

class ShownPixelsTest : public testing::TestWithParam<std::string> {};

void ExpectShown(const std::string& name, const Color& background, const RawTensor& rgb) {
  const auto decoded = DecodeImage(FileOf(name), background);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->image.height, rgb.shape[0]);
  EXPECT_EQ(decoded->image.width, rgb.shape[1]);
  EXPECT_EQ(decoded->image.pixels, rgb.As<uint8_t>());
  EXPECT_EQ(decoded->facts.height, rgb.shape[0]);
  EXPECT_EQ(decoded->facts.width, rgb.shape[1]);
}

TEST_P(ShownPixelsTest, AreThoseOfThePictureAsItIsShown) {
  ExpectShown(GetParam(), {}, Decodable().at(GetParam() + "/rgb"));
  const auto over = Decodable().find(GetParam() + "/over");
  const bool is_transparent = over != Decodable().end();
  ExpectShown(GetParam(), kBackground,
              is_transparent ? over->second : Decodable().at(GetParam() + "/rgb"));
  EXPECT_EQ(DecodeImage(FileOf(GetParam()), kBackground)->facts.blended_over,
            is_transparent ? std::optional(kBackground) : std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, ShownPixelsTest, testing::ValuesIn(DecodableNames()), SafeName);

TEST(DecodeImage, SaysWhatTheFileHoldsAndWhatWasDone) {
  const Color white;
  const std::map<std::string, InputImage> facts = {
      {"png/rgb8", {"PNG", 21, 13, 1, std::nullopt, 8, false}},
      {"png/grey1", {"PNG", 21, 13, 1, std::nullopt, 1, true}},
      {"png/grey16_ramp", {"PNG", 128, 2, 1, std::nullopt, 16, true}},
      {"png/grey_alpha16", {"PNG", 21, 13, 1, white, 16, true}},
      {"png/rgba8_opaque", {"PNG", 21, 13, 1, std::nullopt, 8, false}},
      {"png/rgba16_interlaced", {"PNG", 21, 13, 1, white, 16, false}},
      {"png/palette2_transparent", {"PNG", 21, 13, 1, white, 8, false}},
      {"png/exif_6", {"PNG", 9, 13, 6, std::nullopt, 8, false}},
      {"png/exif_and_opacity", {"PNG", 9, 13, 7, white, 8, false}},
      {"jpeg/exif_3", {"JPEG", 24, 17, 3, std::nullopt, 8, false}},
      {"jpeg/exif_9", {"JPEG", 24, 17, 1, std::nullopt, 8, false}},
      {"jpeg/exif_of_grey", {"JPEG", 17, 24, 5, std::nullopt, 8, true}},
      {"webp/exif_8", {"WebP", 17, 24, 8, std::nullopt, 8, false}},
      {"webp/lossy_opacity", {"WebP", 24, 17, 1, white, 8, false}},
  };
  for (const auto& [name, expected] : facts) {
    const auto decoded = DecodeImage(FileOf(name));
    ASSERT_TRUE(decoded.ok()) << name << decoded.status();
    EXPECT_EQ(decoded->facts, expected) << name;
  }
}

TEST(DecodeImage, ReadsTheGoldenImages) {
  for (const char* name : {"ti2v-i2v", "i2v", "i2v-crop"}) {
    const std::string path = std::string(WAN_GOLDEN_DIR) + "/pipelines/" + name;
    const auto image = DecodeImage(ReadFileBytes(path + ".png"));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->image.pixels,
              ReadRawTensors(path + ".safetensors").at("image_u8").As<uint8_t>())
        << name;
  }
}

TEST(DecodeImage, SaysWhyAFileIsRefused) {
  const std::map<std::string, std::string> messages = {
      {"png_signature_only", "is a broken PNG file: it is cut off"},
      {"png_no_header", "is a broken PNG file: "},
      {"png_short_header", "is a broken PNG file: "},
      {"png_huge",
       "is 65535x65535 pixels; sides must be from 1 to 65500, with at most 64000000 pixels"},
      {"png_largest_sides", "is a broken PNG file: "},
      {"png_no_width", "is a broken PNG file: "},
      {"png_bad_depth", "is a broken PNG file: "},
      {"png_bad_color", "is a broken PNG file: "},
      {"png_no_pixels", "is a broken PNG file: "},
      {"png_no_end", "is a broken PNG file: it is cut off"},
      {"png_few_rows", "is a broken PNG file: "},
      {"png_cut_stream", "is a broken PNG file: "},
      {"png_not_deflate", "is a broken PNG file: "},
      {"png_bad_filter", "is a broken PNG file: "},
      {"png_bad_checksum", "is a broken PNG file: IDAT: CRC error"},
      {"png_bad_checksum_of_text", "is a broken PNG file: tEXt: CRC error"},
      {"png_no_palette", "is a broken PNG file: "},
      {"png_long_chunk", "is a broken PNG file: "},
      {"jpeg_signature_only", "is a broken JPEG file"},
      {"jpeg_no_scan", "is a broken JPEG file"},
      {"jpeg_huge", "is 65500x65500 pixels"},
      {"jpeg_no_height", "is a broken JPEG file"},
      {"jpeg_half", "is a broken JPEG file: Premature end"},
      {"jpeg_no_end", "is a broken JPEG file"},
      {"jpeg_scrambled", "is a broken JPEG file: Corrupt JPEG data"},
      {"jpeg_many_scans", "is a broken JPEG file: it has more than 100 scans, too many for "},
      {"gif", "is GIF; must be PNG, JPEG or WebP"},
      {"gif_animated", "is GIF; must be PNG, JPEG or WebP"},
      {"webp_animated",
       "is an animated WebP file; must be a still image, for example its first frame"},
      {"webp_signature_only", "is a broken WebP file: it is cut off"},
      {"webp_no_riff", "is a broken WebP file: it does not begin with RIFF"},
      {"webp_half", "is a broken WebP file: it is cut off"},
      {"webp_no_pixels", "is a broken WebP file: "},
      {"webp_bad_pixels", "is a broken WebP file: "},
      {"webp_huge", "is a broken WebP file: "},
      {"bmp", "is BMP; must be PNG, JPEG or WebP"},
      {"tiff", "is TIFF; must be PNG, JPEG or WebP"},
      {"text", "is not an image file; must be PNG, JPEG or WebP"},
      {"zeros", "is not an image file; must be PNG, JPEG or WebP"},
      {"one_byte", "is not an image file; must be PNG, JPEG or WebP"},
  };
  EXPECT_EQ(Broken().size(), messages.size());
  for (const auto& [name, tensor] : Broken()) {
    const auto image = DecodeImage(tensor.bytes);
    EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << name;
    ASSERT_TRUE(messages.contains(name)) << name;
    EXPECT_THAT(std::string(image.status().message()), HasSubstr(messages.at(name))) << name;
  }
  EXPECT_THAT(std::string(DecodeImage("").status().message()), HasSubstr("is empty"));
  EXPECT_THAT(
      std::string(DecodeImage("version https://git-lfs.github.com/spec/v1\n").status().message()),
      HasSubstr("is a Git LFS pointer, not the file: run git lfs pull"));
}

TEST(DecodeImage, HoldsTheLimits) {
  const std::string png = *EncodePng(std::vector<uint8_t>(20 * 10 * 3), 20, 10);
  const std::string jpeg = *EncodeJpeg(std::vector<uint8_t>(20 * 10 * 3), 20, 10);
  for (const std::string& file : {png, jpeg}) {
    EXPECT_TRUE(DecodeImage(file, {}, {.max_pixels = 200}).ok());
    EXPECT_THAT(
        std::string(DecodeImage(file, {}, {.max_pixels = 199}).status().message()),
        HasSubstr("is 20x10 pixels; sides must be from 1 to 65500, with at most 199 pixels"));
    const int64_t size = static_cast<int64_t>(file.size());
    EXPECT_TRUE(DecodeImage(file, {}, {.max_bytes = size}).ok());
    EXPECT_THAT(std::string(DecodeImage(file, {}, {.max_bytes = size - 1}).status().message()),
                AllOf(HasSubstr("bytes; must have at most"), HasSubstr(std::to_string(size))));
  }
}

TEST(DecodeImage, EndsAfterAStopRequest) {
  std::stop_source source;
  source.request_stop();
  for (const char* name : {"png/rgb8", "png/palette4_interlaced", "jpeg/420",
                           "jpeg/420_progressive", "webp/lossy_opacity"}) {
    const absl::Status status = DecodeImage(FileOf(name), {}, {}, source.get_token()).status();
    EXPECT_EQ(status, absl::CancelledError("stopped while the image was decoded")) << name;
  }
}

// No prefix of a file is an image, whatever the cut.
TEST(DecodeImage, RefusesEveryTruncation) {
  for (const char* name :
       {"png/rgb8_many_chunks", "png/palette4_interlaced", "jpeg/420", "jpeg/420_progressive",
        "jpeg/one_pixel", "webp/lossy_opacity", "webp/exif_of_lossy", "png/exif_after_pixels"}) {
    const std::string& file = FileOf(name);
    for (size_t size = 0; size < file.size(); ++size) {
      ASSERT_EQ(DecodeImage(file.substr(0, size)).status().code(),
                absl::StatusCode::kInvalidArgument)
          << name << " cut to " << size << " of " << file.size();
    }
  }
}

// Damage is refused or harmless, never a crash or an error that blames the server.
TEST(DecodeImage, SurvivesDamage) {
  std::mt19937 random(1);
  for (const std::string& name : DecodableNames()) {
    const std::string& file = FileOf(name);
    const RawTensor& rgb = Decodable().at(name + "/rgb");
    for (int round = 0; round < 40; ++round) {
      std::string damaged = file;
      const int places = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < places; ++i) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      const auto image = DecodeImage(damaged, {}, {.max_pixels = 1 << 20});
      if (image.ok()) {
        const RgbImage& pixels = image->image;
        EXPECT_TRUE(CheckPixels(pixels.pixels, pixels.width, pixels.height).ok()) << name;
      } else {
        EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument)
            << name << " " << image.status();
      }
      // Every byte of a PNG that matters is under a checksum.
      if (image.ok() && name.starts_with("png/")) {
        EXPECT_EQ(image->image.pixels, rgb.As<uint8_t>()) << name;
      }
    }
  }
}

}  // namespace
}  // namespace wan
