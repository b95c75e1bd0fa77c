// The convolution kernel for Hopper GPUs against its ATen reference in float64, and the causal
// convolution that is made of it.
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/ops/causal_conv3d.h"
#include "engine/ops/convolution.h"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/fused_convolution.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

constexpr int64_t kTime = 2;

struct Case {
  const char* name;
  Spread spread;
  int64_t in;
  int64_t out;  // of the kernel, all of a spread
  std::vector<int64_t> kernel;
  std::vector<int64_t> runs;  // of frames
  int64_t leading_zeros;
  int64_t height;
  int64_t width;
  int64_t addend_channels;  // 0: none
  int64_t addend_frames;
  int64_t time_factor;
};

const Case kCases[] = {
    {"3x3x3", Spread::kNone, 64, 128, {3, 3, 3}, {2, 2, 2}, 0, 13, 21, 0, 0, 1},
    {"3x3x3 with an addend", Spread::kNone, 32, 192, {3, 3, 3}, {2, 3}, 0, 8, 16, 192, 3, 1},
    {"3x3x3, first chunk", Spread::kNone, 96, 96, {3, 3, 3}, {1}, 2, 9, 17, 96, 1, 1},
    {"3x3x3, tiny", Spread::kNone, 96, 96, {3, 3, 3}, {2, 1}, 0, 1, 2, 0, 0, 1},
    {"3x3x3, many tiles", Spread::kNone, 32, 384, {3, 3, 3}, {2, 2, 2}, 0, 90, 160, 384, 4, 1},
    {"3x3x3 to colors", Spread::kNone, 96, 3, {3, 3, 3}, {2, 2, 2}, 0, 19, 33, 0, 0, 1},
    {"3x3x3 to folded colors", Spread::kNone, 32, 12, {3, 3, 3}, {2, 4}, 0, 16, 16, 12, 4, 1},
    {"1x1x1", Spread::kNone, 64, 256, {1, 1, 1}, {4}, 0, 11, 19, 256, 4, 1},
    {"frames", Spread::kFrames, 96, 256, {3, 1, 1}, {2, 2}, 0, 11, 19, 0, 0, 1},
    {"pixels", Spread::kPixels, 64, 4 * 96, {1, 2, 2}, {3}, 0, 11, 19, 0, 0, 1},
    {"pixels, as many channels", Spread::kPixels, 32, 4 * 128, {1, 2, 2}, {4}, 0, 9, 16, 128, 2, 2},
    {"pixels, half the channels", Spread::kPixels, 32, 4 * 96, {1, 2, 2}, {2}, 0, 8, 17, 192, 2, 1},
    {"pixels, half the channels and frames",
     Spread::kPixels,
     32,
     4 * 96,
     {1, 2, 2},
     {4},
     0,
     8,
     17,
     192,
     2,
     2},
    {"pixels, first chunk", Spread::kPixels, 32, 4 * 128, {1, 2, 2}, {1}, 0, 8, 17, 256, 1, 2},
};

struct Precision {
  const char* name;
  at::ScalarType dtype;
  at::ScalarType result;
  double tolerance;

  bool widens() const { return dtype != result; }
};

// The result is rounded once; TF32 rounds the inputs to 11 bits instead. Where neither happens the
// sums of the tensor cores remain, which cut off: 2.4e-6 over 2592 products.
constexpr Precision kPrecisions[] = {{"bf16", at::kBFloat16, at::kBFloat16, 0x1p-8},
                                     {"fp16", at::kHalf, at::kHalf, 0x1p-11},
                                     {"fp16_to_fp32", at::kHalf, at::kFloat, 5e-6},
                                     {"tf32", at::kFloat, at::kFloat, 0x1p-11}};

at::Tensor Random(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kFloat))
      .to(dtype)
      .contiguous(ConvolutionLayout(static_cast<int64_t>(shape.size())));
}

int64_t Phases(Spread spread) {
  return spread == Spread::kPixels ? 4 : spread == Spread::kFrames ? 2 : 1;
}

FusedConvolution Make(const Case& c, const Precision& precision) {
  const at::ScalarType dtype = precision.dtype;
  FusedConvolution convolution;
  const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
  convolution.weight = Random({c.out, c.in, c.kernel[0], c.kernel[1], c.kernel[2]}, at::kFloat)
                           .div_(std::sqrt(static_cast<double>(taps * c.in)))
                           .to(dtype);
  convolution.bias =
      at::randn({c.out / Phases(c.spread)}, at::TensorOptions(at::kCUDA).dtype(precision.result));
  for (const int64_t frames : c.runs) {
    convolution.frames.push_back(Random({1, c.in, frames, c.height, c.width}, dtype));
  }
  convolution.leading_zeros = c.leading_zeros;
  convolution.spread = c.spread;
  if (c.addend_channels > 0) {
    convolution.addend =
        Random({1, c.addend_channels, c.addend_frames, c.height, c.width}, precision.result);
    convolution.addend_time_factor = c.time_factor;
  }
  return convolution;
}

at::Tensor Expected(FusedConvolution convolution) {
  convolution.weight = convolution.weight.to(at::kDouble);
  convolution.bias = convolution.bias.to(at::kDouble);
  for (at::Tensor& frames : convolution.frames) frames = frames.to(at::kDouble);
  if (convolution.addend.defined()) convolution.addend = convolution.addend.to(at::kDouble);
  return ConvolveFusedReference(convolution);
}

// NaN wherever the kernel does not write.
at::Tensor Unwritten(const at::Tensor& like, at::ScalarType dtype) {
  return at::full(like.sizes(), std::numeric_limits<double>::quiet_NaN(),
                  like.options().dtype(dtype))
      .contiguous(ConvolutionLayout(like.dim()));
}

class FusedConvolutionGpuTest : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (GetCudaOps().compute_capability(0) != 90) GTEST_SKIP() << "for Hopper GPUs";
  }
};

TEST_P(FusedConvolutionGpuTest, EqualsTheReference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    if (GetParam().widens() && c.kernel[1] != 3) continue;
    const FusedConvolution convolution = Make(c, GetParam());
    ASSERT_TRUE(HasFusedConvolution(convolution.weight, c.spread, /*allow_tf32=*/true));
    const at::Tensor expected = Expected(convolution);
    at::Tensor y = Unwritten(expected, GetParam().result);
    ConvolveFused(convolution, y);
    EXPECT_LE(RelativeError(y, expected), GetParam().tolerance);
    at::Tensor again = Unwritten(expected, GetParam().result);
    ConvolveFused(convolution, again);
    EXPECT_TRUE(at::equal(y, again)) << "the same bits at every run";
  }
}

TEST_P(FusedConvolutionGpuTest, AddsToItsOwnResult) {
  if (GetParam().widens()) GTEST_SKIP() << "for 3x3x3 only";
  FusedConvolution convolution = Make(kCases[7], GetParam());
  const at::Tensor expected = Expected(convolution);
  ConvolveFused(convolution, convolution.addend);
  EXPECT_LE(RelativeError(convolution.addend, expected), GetParam().tolerance);
}

TEST_P(FusedConvolutionGpuTest, ChunksGiveExactlyWhatTheWholeVideoGives) {
  const at::ScalarType dtype = GetParam().dtype;
  // 16 channels are filled up to a whole chunk of them.
  for (const int64_t in : {16, 96}) {
    const CausalConv3d conv(Random({96, in, 3, 3, 3}, dtype),
                            Random({96, 1, 1, 1}, GetParam().result).view({96}),
                            /*time_stride=*/1, /*allow_tf32=*/true);
    const at::Tensor x = Random({1, in, 9, 11, 18}, dtype);
    at::Tensor whole_history;
    const at::Tensor whole = conv(x, whole_history);
    at::Tensor history;
    std::vector<at::Tensor> parts;
    int64_t begin = 0;
    for (const int64_t count : {1, 1, 4, 3}) {
      parts.push_back(conv(x.narrow(kTime, begin, count), history));
      begin += count;
    }
    EXPECT_TRUE(at::equal(at::cat(parts, kTime), whole)) << in << " channels";
    EXPECT_TRUE(at::equal(history, whole_history));
  }
}

TEST_P(FusedConvolutionGpuTest, KernelOverTheEnlargementGivesTheEnlargedConvolution) {
  if (GetParam().widens()) GTEST_SKIP() << "for 3x3x3 only";
  const at::Tensor weight = Random({96, 32, 3, 3}, at::kFloat).div_(17).to(GetParam().dtype);
  FusedConvolution convolution;
  convolution.weight = KernelOverEnlargement(weight);
  convolution.bias = Random({96, 1, 1, 1}, GetParam().dtype).view({96});
  convolution.frames = {Random({1, 32, 2, 9, 13}, GetParam().dtype)};
  convolution.spread = Spread::kPixels;
  const at::Tensor x = convolution.frames[0].squeeze(0).transpose(0, 1).to(at::kDouble);
  const at::Tensor expected =
      at::conv2d(at::upsample_nearest2d(x, {18, 26}), weight.to(at::kDouble),
                 convolution.bias.to(at::kDouble), /*stride=*/1, /*padding=*/1);
  at::Tensor y = Unwritten(expected.transpose(0, 1).unsqueeze(0), GetParam().dtype);
  ConvolveFused(convolution, y);
  // The sums of the kernel's values are rounded, too.
  EXPECT_LE(RelativeError(y.squeeze(0).transpose(0, 1), expected), 2 * GetParam().tolerance);
}

TEST_P(FusedConvolutionGpuTest, RefusesWhatItCannotDo) {
  const at::ScalarType dtype = GetParam().dtype;
  const auto has = [&](const std::vector<int64_t>& shape, Spread spread) {
    return HasFusedConvolution(Random(shape, dtype), spread, /*allow_tf32=*/true);
  };
  EXPECT_TRUE(has({96, 32, 3, 3, 3}, Spread::kNone));
  EXPECT_FALSE(has({96, 24, 3, 3, 3}, Spread::kNone)) << "channels of half a chunk";
  EXPECT_FALSE(has({80, 32, 3, 3, 3}, Spread::kNone)) << "no tile divides 80";
  EXPECT_FALSE(has({96, 32, 3, 5, 5}, Spread::kNone)) << "5x5";
  EXPECT_FALSE(has({96, 32, 1, 2, 2}, Spread::kPixels)) << "24 channels";
  EXPECT_FALSE(HasFusedConvolution(Random({96, 32, 3, 3, 3}, at::kFloat), Spread::kNone,
                                   /*allow_tf32=*/false))
      << "fp32";
  FusedConvolution convolution = Make(kCases[0], GetParam());
  at::Tensor short_one =
      at::empty({1, 128, 3, 13, 21}, convolution.weight.options()).contiguous(ConvolutionLayout(5));
  EXPECT_THROW(ConvolveFused(convolution, short_one), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedConvolutionGpuTest, testing::ValuesIn(kPrecisions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wan
