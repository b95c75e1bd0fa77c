// The kernels of the autoencoder against their ATen references.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "engine/ops/channel_rms_norm.h"
#include "engine/ops/convolution.h"
#include "engine/ops/vae_cuda_ops.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

// Channels last, as activations are.
at::Tensor Random(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kFloat))
      .mul_(7)
      .to(dtype)
      .contiguous(ConvolutionLayout(static_cast<int64_t>(shape.size())));
}

at::Tensor RandomGamma(int64_t channels, at::ScalarType dtype) {
  return at::randn({channels}, at::TensorOptions(at::kCUDA).dtype(dtype));
}

bool Kernel(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& out) {
  return GetVaeCudaOps().channel_rms_norm_silu(x, gamma, out);
}

TEST(ChannelRmsNormGpuTest, KernelEqualsTheReference) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    // The kernel rounds to bf16 or fp16 once, at the end: by at most half of its last bit.
    const double tolerance = dtype == at::kFloat ? 1e-6 : dtype == at::kBFloat16 ? 0x1p-8 : 0x1p-11;
    for (const int64_t channels : {8, 24, 96, 160, 192, 256, 384, 512, 640, 1024}) {
      for (const auto& [frames, height, width] :
           {std::tuple{1, 1, 1}, {1, 3, 5}, {2, 9, 7}, {4, 44, 80}}) {
        SCOPED_TRACE(std::to_string(channels) + " channels, " + std::to_string(frames) + "x" +
                     std::to_string(height) + "x" + std::to_string(width));
        const at::Tensor x = Random({1, channels, frames, height, width}, dtype);
        const at::Tensor gamma = RandomGamma(channels, dtype);
        const at::Tensor expected = at::empty_like(x, x.options().dtype(at::kFloat));
        ChannelRmsNormSiluReference(x.to(at::kFloat), gamma.to(at::kFloat), expected);
        // The last frames of a window, as a causal convolution has them.
        const at::Tensor window = at::full({1, channels, frames + 2, height, width}, 5, x.options())
                                      .contiguous(ConvolutionLayout(5));
        const at::Tensor out = window.narrow(2, 2, frames);
        ASSERT_TRUE(Kernel(x, gamma, out));
        EXPECT_LE(RelativeError(out, expected), tolerance);
        EXPECT_TRUE(window.narrow(2, 0, 2).eq(5).all().item<bool>()) << "wrote beside its view";
      }
    }
  }
}

TEST(ChannelRmsNormGpuTest, KernelMayRoundToFp16) {
  const at::Tensor x = Random({1, 96, 2, 9, 7}, at::kFloat);
  const at::Tensor gamma = RandomGamma(96, at::kFloat);
  const at::Tensor expected = at::empty_like(x);
  ChannelRmsNormSiluReference(x, gamma, expected);
  const at::Tensor out = at::empty_like(x, x.options().dtype(at::kHalf));
  ASSERT_TRUE(Kernel(x, gamma, out));
  EXPECT_LE(RelativeError(out, expected), 0x1p-11);
}

TEST(ChannelRmsNormGpuTest, KernelLeavesBlackPixelsBlack) {
  const at::Tensor x = at::zeros_like(Random({1, 32, 1, 2, 3}, at::kFloat));
  const at::Tensor out = Random({1, 32, 1, 2, 3}, at::kFloat);
  ASSERT_TRUE(Kernel(x, RandomGamma(32, at::kFloat), out));
  EXPECT_TRUE(out.eq(0).all().item<bool>());
}

TEST(ChannelRmsNormGpuTest, KernelRefusesWhatItCannotRead) {
  const auto refuses = [](const at::Tensor& x, const at::Tensor& gamma) {
    const at::Tensor out = at::zeros_like(x);
    const bool done = Kernel(x, gamma, out);
    return !done && out.eq(0).all().item<bool>();
  };
  const at::Tensor x = Random({1, 32, 2, 3, 4}, at::kFloat);
  const at::Tensor gamma = RandomGamma(32, at::kFloat);
  EXPECT_FALSE(refuses(x, gamma));
  EXPECT_TRUE(refuses(x.contiguous(), gamma)) << "channels apart";
  EXPECT_TRUE(refuses(x.to(at::kDouble), gamma.to(at::kDouble))) << "float64";
  EXPECT_TRUE(refuses(x, gamma.to(at::kBFloat16))) << "dtypes that differ";
  EXPECT_TRUE(refuses(x.narrow(4, 0, 3), gamma)) << "columns left out";
  const at::Tensor odd = Random({1, 30, 2, 3, 4}, at::kFloat);
  EXPECT_TRUE(refuses(odd, RandomGamma(30, at::kFloat))) << "30 channels";
}

TEST(ChannelRmsNormGpuTest, OperatorFallsBackToTheReference) {
  const at::Tensor x = Random({1, 30, 2, 3, 4}, at::kFloat);
  const at::Tensor gamma = RandomGamma(30, at::kFloat);
  const at::Tensor expected = at::empty_like(x);
  ChannelRmsNormSiluReference(x, gamma, expected);
  const at::Tensor out = at::empty_like(x);
  ChannelRmsNormSilu(x, gamma, out);
  EXPECT_TRUE(at::equal(out, expected));
}

}  // namespace
}  // namespace wan
