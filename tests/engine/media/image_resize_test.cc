#include "engine/media/image_resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/media/image_decode.h"
#include "nlohmann/json.hpp"
#include "tests/engine/raw_tensors.h"

namespace wan {

void PrintTo(const ImageSize& size, std::ostream* out) { *out << size.width << "x" << size.height; }

namespace {

using testing::HasSubstr;

RgbImage AsImage(const RawTensor& tensor) {
  return {static_cast<int>(tensor.shape[1]), static_cast<int>(tensor.shape[0]),
          tensor.As<uint8_t>()};
}

TEST(ResizeLanczos, EqualsPillowToTheLastBit) {
  const auto tensors = ReadRawTensors(std::string(WAN_MEDIA_DATA_DIR) + "/resize.safetensors");
  ASSERT_EQ(tensors.size(), 22u);
  for (int i = 0; tensors.contains(std::to_string(i) + "/image"); ++i) {
    const RgbImage image = AsImage(tensors.at(std::to_string(i) + "/image"));
    const RgbImage expected = AsImage(tensors.at(std::to_string(i) + "/resized"));
    const auto resized = ResizeLanczos(image, {expected.width, expected.height});
    ASSERT_TRUE(resized.ok()) << resized.status();
    EXPECT_EQ(*resized, expected) << "case " << i;
  }
}

// DIFFERENCES 11, and image_rule in cases.json: size by area and ratio, cover, middle.
TEST(Differences, Item11TheRatioIsKeptAndTheMiddleCutOut) {
  const std::string folder = std::string(WAN_GOLDEN_DIR) + "/";
  const auto cases = nlohmann::json::parse(ReadFileBytes(folder + "cases.json"))["cases"];
  int seen = 0;
  for (const auto& record : cases) {
    if (record["id"] != "pipeline/ti2v-i2v") continue;
    ++seen;
    const auto& parameters = record["parameters"];
    const auto decoded = DecodeImage(ReadFileBytes(folder + std::string(parameters["image"])));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    const RgbImage& image = decoded->image;
    const int64_t area = parameters["requested_size"]["width"].get<int64_t>() *
                         parameters["requested_size"]["height"].get<int64_t>();
    const ImageSize size = BestOutputSize(image.width, image.height, area, 32);
    EXPECT_EQ(size.width, parameters["output_size"]["width"]);
    EXPECT_EQ(size.height, parameters["output_size"]["height"]);
    const auto frame = CoverAndCrop(image, size);
    ASSERT_TRUE(frame.ok()) << frame.status();

    const auto tensors = ReadRawTensors(folder + std::string(record["file"]));
    EXPECT_EQ(image.pixels, tensors.at("image_u8").As<uint8_t>());
    // [3, H, W], x / 255 * 2 - 1; in the order torchvision and upstream compute it.
    const std::vector<float> expected = tensors.at("image").As<float>();
    const size_t pixels = static_cast<size_t>(size.width) * size.height;
    ASSERT_EQ(expected.size(), 3 * pixels);
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t i = 0; i < pixels; ++i) {
        const float value = static_cast<float>(frame->pixels[3 * i + channel]) / 255.0f;
        ASSERT_EQ((value - 0.5f) / 0.5f, expected[channel * pixels + i]) << channel << " " << i;
      }
    }
  }
  EXPECT_EQ(seen, 1);
}

// DIFFERENCES 10: only the area counts, both sides are rounded down.
TEST(Differences, Item10BothSidesAreRoundedDown) {
  const std::string folder = std::string(WAN_GOLDEN_DIR) + "/";
  const auto cases = nlohmann::json::parse(ReadFileBytes(folder + "cases.json"))["cases"];
  int seen = 0;
  for (const auto& record : cases) {
    if (record["checkpoint"] != "i2v-a14b" || record["kind"] != "pipeline") continue;
    ++seen;
    const auto& parameters = record["parameters"];
    const int64_t area = parameters["requested_size"]["width"].get<int64_t>() *
                         parameters["requested_size"]["height"].get<int64_t>();
    const ImageSize expected = {parameters["output_size"]["width"],
                                parameters["output_size"]["height"]};
    EXPECT_EQ(FloorOutputSize(parameters["image_size"]["width"], parameters["image_size"]["height"],
                              area, 16),
              expected);
  }
  EXPECT_EQ(seen, 2);
}

TEST(FloorOutputSize, IsWhatWan22Computes) {
  // Computed with the expressions of Wan2.2's image2video.py.
  const struct {
    int width;
    int height;
    int64_t area;
    ImageSize expected;
  } cases[] = {
      {1920, 1080, 1280 * 720, {1280, 720}}, {1080, 1920, 1280 * 720, {720, 1280}},
      {1000, 700, 1280 * 720, {1136, 800}},  {832, 480, 832 * 480, {832, 464}},
      {480, 832, 832 * 480, {480, 832}},     {10000, 10, 64 * 64, {0, 0}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(FloorOutputSize(c.width, c.height, c.area, 16), c.expected)
        << c.width << "x" << c.height;
  }
}

TEST(IsFloorOutputSize, HoldsForAllThatTheRuleMakes) {
  for (const ImageSize image : {ImageSize{1920, 1080}, {1000, 700}, {832, 480}, {333, 517}}) {
    for (int64_t area = 64 * 64; area < 2048 * 2048; area += 9'973) {
      const ImageSize size = FloorOutputSize(image.width, image.height, area, 16);
      if (size.width == 0) continue;
      ASSERT_TRUE(IsFloorOutputSize(image, size, 16)) << size.width << "x" << size.height;
    }
  }
  EXPECT_FALSE(IsFloorOutputSize({1920, 1080}, {720, 1280}, 16));
  EXPECT_FALSE(IsFloorOutputSize({1920, 1080}, {1280, 640}, 16));
  EXPECT_FALSE(IsFloorOutputSize({1000, 1000}, {320, 288}, 16));
}

TEST(CropToRatio, TakesTheMiddle) {
  RgbImage image{4, 2, {}};
  for (uint8_t i = 0; i < 24; ++i) image.pixels.push_back(i);
  const RgbImage square = CropToRatio(image, {64, 64});
  EXPECT_EQ(square, (RgbImage{2, 2, {3, 4, 5, 6, 7, 8, 15, 16, 17, 18, 19, 20}}));
  EXPECT_EQ(CropToRatio(image, {64, 32}), image);
  EXPECT_EQ(CropToRatio(image, {1024, 16}),
            (RgbImage{4, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}));
}

TEST(BestOutputSize, TakesTheNearerRatio) {
  // Computed with Wan2.2's best_output_size.
  const struct {
    int width;
    int height;
    int64_t area;
    int multiple;
    ImageSize expected;
  } cases[] = {
      {1920, 1080, 901120, 32, {1248, 704}},
      {1080, 1920, 901120, 32, {704, 1248}},
      {1280, 704, 901120, 32, {1280, 704}},
      {704, 1280, 901120, 32, {704, 1280}},
      {1000, 1000, 901120, 32, {960, 928}},
      {4032, 3024, 901120, 32, {1088, 800}},
      {100, 70, 6144, 32, {96, 64}},
      {90, 150, 5120, 16, {48, 96}},
      {3000, 1000, 399360, 32, {1088, 352}},
      {50, 1000, 901120, 32, {192, 4224}},
      {1, 1, 4096, 32, {64, 64}},
      {512, 512, 6144, 32, {96, 64}},
      {2513, 1981, 901120, 16, {1072, 832}},
      {1961, 1102, 399360, 16, {832, 480}},
      {2977, 1966, 6144, 32, {96, 64}},
      {2657, 656, 399360, 16, {1264, 304}},
      {2182, 1637, 901120, 16, {1088, 816}},
      {692, 2461, 76800, 16, {144, 512}},
      {589, 1537, 901120, 16, {592, 1520}},
      {596, 2067, 76800, 16, {144, 512}},
      {100, 100, 2091, 32, {64, 32}},
      {100, 100, 2188, 32, {64, 32}},
      {100, 100, 2285, 32, {64, 32}},
      {100, 100, 2382, 32, {64, 32}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(BestOutputSize(c.width, c.height, c.area, c.multiple), c.expected)
        << c.width << "x" << c.height << ", area " << c.area << ", multiple " << c.multiple;
  }
}

TEST(BestOutputSize, NothingFitsAnImageThatIsTooNarrow) {
  EXPECT_EQ(BestOutputSize(1, 5000, 704 * 1280, 32), (ImageSize{0, 0}));
  EXPECT_EQ(BestOutputSize(5000, 1, 704 * 1280, 32), (ImageSize{0, 0}));
  EXPECT_EQ(BestOutputSize(10, 10, 31 * 32, 32), (ImageSize{0, 0}));
  EXPECT_EQ(BestOutputSize(10, 10, 32 * 32, 32), (ImageSize{32, 32}));
}

TEST(BestOutputSize, KeepsItsPromisesForAnyImage) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const int width = 1 + static_cast<int>(random() % 4000);
    const int height = 1 + static_cast<int>(random() % 4000);
    const int64_t area = 1 + static_cast<int64_t>(random() % (2000 * 2000));
    const int multiple = round % 2 == 0 ? 32 : 16;
    const ImageSize size = BestOutputSize(width, height, area, multiple);
    if (size == ImageSize{0, 0}) continue;
    ASSERT_EQ(size.width % multiple, 0);
    ASSERT_EQ(size.height % multiple, 0);
    ASSERT_GT(size.width, 0);
    ASSERT_GT(size.height, 0);
    ASSERT_LE(static_cast<int64_t>(size.width) * size.height, area);
  }
}

TEST(ResizeLanczos, LeavesFlatColoursAndEqualSizesAlone) {
  RgbImage flat{23, 31, {}};
  for (int i = 0; i < 23 * 31; ++i) flat.pixels.insert(flat.pixels.end(), {0, 255, 93});
  EXPECT_EQ(*ResizeLanczos(flat, {23, 31}), flat);
  std::mt19937 random(9);
  for (int round = 0; round < 50; ++round) {
    const int width = 1 + static_cast<int>(random() % 80);
    const int height = 1 + static_cast<int>(random() % 80);
    const auto resized = ResizeLanczos(flat, {width, height});
    ASSERT_TRUE(resized.ok());
    ASSERT_EQ(resized->pixels.size(), static_cast<size_t>(width) * height * 3);
    for (size_t i = 0; i < resized->pixels.size(); ++i) {
      ASSERT_EQ(resized->pixels[i], flat.pixels[i % 3]) << width << "x" << height;
    }
  }
}

// A disc stays a disc and in the middle, whatever is cut off.
TEST(CoverAndCrop, GivesTheSizeAskedForWithoutDistortion) {
  for (const ImageSize from : {ImageSize{120, 240}, {240, 120}, {120, 120}}) {
    RgbImage image{from.width, from.height, {}};
    constexpr double kRadius = 30;
    for (int y = 0; y < from.height; ++y) {
      for (int x = 0; x < from.width; ++x) {
        const double distance = std::hypot(x + 0.5 - from.width / 2, y + 0.5 - from.height / 2);
        image.pixels.insert(image.pixels.end(), 3, distance < kRadius ? 255 : 0);
      }
    }
    for (const ImageSize size : {ImageSize{60, 60}, {90, 64}, {64, 128}, {240, 96}}) {
      SCOPED_TRACE(testing::Message() << from.width << "x" << from.height << " to " << size.width
                                      << "x" << size.height);
      const auto frame = CoverAndCrop(image, size);
      ASSERT_TRUE(frame.ok()) << frame.status();
      ASSERT_EQ(frame->width, size.width);
      ASSERT_EQ(frame->height, size.height);
      const double scale = std::max(static_cast<double>(size.width) / from.width,
                                    static_cast<double>(size.height) / from.height);
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const double distance = std::hypot(x + 0.5 - size.width / 2, y + 0.5 - size.height / 2);
          const int value = frame->pixels[3 * (static_cast<size_t>(y) * size.width + x)];
          // Near the edge it may be anything.
          if (std::abs(distance - kRadius * scale) < 3) continue;
          ASSERT_EQ(value > 127, distance < kRadius * scale) << x << " " << y;
        }
      }
    }
  }
}

// Scaled before it is cut, it would be 70400 pixels wide.
TEST(CoverAndCrop, CutsALongImageFirst) {
  RgbImage image{2000, 20, std::vector<uint8_t>(size_t{2000} * 20 * 3)};
  for (int y = 0; y < image.height; ++y) {
    for (int x = 985; x < 1015; ++x) {
      image.pixels[3 * (static_cast<size_t>(y) * image.width + x)] = 200;
    }
  }
  const auto frame = CoverAndCrop(image, {1280, 704});
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->width, 1280);
  EXPECT_EQ(frame->height, 704);
  // 20 rows have the ratio of the video with 36 columns; 30 of them are red.
  const auto red = [&](int x) { return frame->pixels[3 * (size_t{352} * 1280 + x)]; };
  EXPECT_EQ(red(640), 200);
  EXPECT_EQ(red(20), 0);
  EXPECT_EQ(red(1260), 0);
}

TEST(Resize, SaysWhatIsWrong) {
  const RgbImage image{2, 2, std::vector<uint8_t>(12)};
  for (const auto resize : {ResizeLanczos, CoverAndCrop}) {
    EXPECT_THAT(std::string(resize(image, {0, 5}).status().message()),
                HasSubstr("the requested size is 0x5; sides must be from 1 to 65500"));
    EXPECT_EQ(resize(image, {70000, 5}).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(resize({2, 2, {}}, {2, 2}).status().message()),
                HasSubstr("the image is 2x2 and has 0 bytes; must have 12"));
  }
}

}  // namespace
}  // namespace wan
