// Sizes beyond 2^31 elements, each operator of the decoder's last stages against itself on parts
// that are smaller. Needs some 40 GiB.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/ops/channel_rms_norm.h"
#include "engine/ops/convolution.h"
#include "engine/ops/duplicate_up_3d.h"
#include "engine/ops/nearest_upsample.h"

namespace wan {
namespace {

constexpr int64_t kElements = int64_t{1} << 31;

at::Tensor Random(const std::vector<int64_t>& shape) {
  at::Tensor x =
      at::empty(shape, at::TensorOptions(at::kCUDA)
                           .dtype(at::kFloat)
                           .memory_format(ConvolutionLayout(static_cast<int64_t>(shape.size()))));
  return x.normal_();
}

// The largest difference, of runs of rows.
double Difference(const at::Tensor& a, const at::Tensor& b) {
  double largest = 0;
  const int64_t row_dim = a.dim() - 2;
  for (int64_t first = 0; first < a.size(row_dim); first += 64) {
    const int64_t count = std::min<int64_t>(64, a.size(row_dim) - first);
    largest = std::max(largest, (a.narrow(row_dim, first, count) - b.narrow(row_dim, first, count))
                                    .abs()
                                    .max()
                                    .item<double>());
  }
  return largest;
}

class LargeSizesGpuTest : public ::testing::Test {
 protected:
  const c10::InferenceMode inference_;
};

struct Case {
  const char* name;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> input;
  int64_t out;
};

TEST_F(LargeSizesGpuTest, Convolutions) {
  const Case cases[] = {
      {"VAE 2.2, first block of the last stage, 2304x1280",
       {3, 3, 3},
       {1, 1, 1},
       {0, 1, 1},
       {1, 512, 6, 640, 1152},
       256},
      {"VAE 2.2, one frame of it beyond the limit, 2816x2048",
       {3, 3, 3},
       {1, 1, 1},
       {0, 1, 1},
       {1, 512, 3, 1024, 1408},
       256},
      {"VAE 2.2, shortcut of it, 4096x2080",
       {1, 1, 1},
       {1, 1, 1},
       {0, 0, 0},
       {1, 512, 4, 1040, 2048},
       256},
      {"VAE 2.2, upsampled frames as a batch, 2304x2048",
       {3, 3},
       {1, 1},
       {1, 1},
       {4, 512, 1024, 1152},
       512},
      {"VAE 2.1, last stage, 2560x1472",
       {3, 3, 3},
       {1, 1, 1},
       {0, 1, 1},
       {1, 96, 6, 1472, 2560},
       96},
  };
  for (const Case& c : cases) {
    std::vector<int64_t> shape = {c.out, c.input[1]};
    shape.insert(shape.end(), c.kernel.begin(), c.kernel.end());
    const Convolution convolution(Random(shape).mul_(0.02), Random({c.out, 1, 1, 1}).flatten(),
                                  c.stride, c.padding, /*allow_tf32=*/false);
    const at::Tensor x = Random(c.input);
    ASSERT_GT(x.numel(), kElements) << c.name;
    const at::Tensor y = convolution(x);
    // Pieces of an eighth, each of which cuDNN addresses in 28 bits.
    const at::Tensor parts = convolution.InPieces(x, kElements / 8);
    const double scale = parts.narrow(parts.dim() - 2, 0, 8).abs().max().item<double>();
    const double error = Difference(y, parts) / scale;
    std::printf("convolution, %s: %ld elements in, %ld out, off by %.1e of the largest\n", c.name,
                static_cast<long>(x.numel()), static_cast<long>(y.numel()), error);
    EXPECT_LE(error, 1e-5) << c.name;
  }
}

TEST_F(LargeSizesGpuTest, ChannelRmsNormSilu) {
  const at::Tensor x = Random({1, 512, 6, 640, 1152});
  ASSERT_GT(x.numel(), kElements);
  const at::Tensor gamma = Random({512, 1, 1, 1}).flatten();
  const at::Tensor out = at::zeros_like(x);
  ChannelRmsNormSilu(x, gamma, out);
  double largest = 0;
  for (int64_t frame = 0; frame < x.size(2); ++frame) {
    const at::Tensor part = x.narrow(2, frame, 1).contiguous(ConvolutionLayout(5));
    const at::Tensor expected = at::zeros_like(part);
    ChannelRmsNormSilu(part, gamma, expected);
    largest = std::max(largest, Difference(out.narrow(2, frame, 1), expected));
  }
  std::printf("norm and SiLU: %ld elements, off by %.1e\n", static_cast<long>(x.numel()), largest);
  EXPECT_EQ(largest, 0);
}

TEST_F(LargeSizesGpuTest, Upsampling) {
  const at::Tensor x = Random({1, 512, 4, 512, 576});
  const at::Tensor y = NearestUpsample(x, 1);
  ASSERT_GT(y.numel(), kElements);
  for (int64_t frame = 0; frame < x.size(2); ++frame) {
    const at::Tensor part = x.narrow(2, frame, 1).contiguous(ConvolutionLayout(5));
    EXPECT_EQ(Difference(y.narrow(2, frame, 1), NearestUpsample(part, 1)), 0) << frame;
  }
  // 1,024 channels become 512 of twice the rows and columns.
  const at::Tensor shortcut = Random({1, 1024, 4, 512, 576});
  at::Tensor sum = y.clone();
  AddDuplicateUp3d(sum, shortcut, 1, 2);
  for (int64_t frame = 0; frame < x.size(2); ++frame) {
    at::Tensor part = y.narrow(2, frame, 1).contiguous(ConvolutionLayout(5)).clone();
    AddDuplicateUp3d(part, shortcut.narrow(2, frame, 1).contiguous(ConvolutionLayout(5)), 1, 2);
    EXPECT_EQ(Difference(sum.narrow(2, frame, 1), part), 0) << frame;
  }
  std::printf("upsampling and its shortcut: %ld elements, same bits\n",
              static_cast<long>(y.numel()));
}

}  // namespace
}  // namespace wan
