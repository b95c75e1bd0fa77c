#include "engine/ops/channel_rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/ops/vae_cuda_ops.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

// The definition, value by value in float64, of x [1, C, pixels].
at::Tensor Expected(const at::Tensor& x, const at::Tensor& gamma, bool silu) {
  const at::Tensor in = x.to(at::kDouble).contiguous();
  const at::Tensor weights = gamma.to(at::kDouble);
  at::Tensor out = at::empty(in.sizes(), in.options());
  const int64_t channels = in.size(1);
  const int64_t pixels = in.size(2);
  const double* const from = in.const_data_ptr<double>();
  for (int64_t p = 0; p < pixels; ++p) {
    double squares = 0;
    for (int64_t c = 0; c < channels; ++c) squares += from[c * pixels + p] * from[c * pixels + p];
    const double length = std::max(std::sqrt(squares), 1e-12);
    for (int64_t c = 0; c < channels; ++c) {
      const double y =
          from[c * pixels + p] / length * std::sqrt(channels) * weights.const_data_ptr<double>()[c];
      out.mutable_data_ptr<double>()[c * pixels + p] = silu ? y / (1 + std::exp(-y)) : y;
    }
  }
  return out;
}

TEST(ChannelRmsNormTest, EqualsTheDefinition) {
  const at::Tensor x = at::randn({1, 12, 35}).mul_(30);
  const at::Tensor gamma = at::randn({12});
  EXPECT_LE(RelativeError(ChannelRmsNorm(x, gamma), Expected(x, gamma, false)), 1e-6);
}

TEST(ChannelRmsNormTest, WritesSiluOfTheNormIntoAStridedView) {
  const at::Tensor x = at::randn({1, 12, 2, 5, 7});
  const at::Tensor gamma = at::randn({12, 1, 1, 1});
  at::Tensor window = at::ones({1, 12, 4, 5, 7});
  ChannelRmsNormSilu(x, gamma, window.narrow(2, 2, 2));
  const at::Tensor expected = Expected(x.view({1, 12, 70}), gamma.view({12}), true);
  EXPECT_LE(RelativeError(window.narrow(2, 2, 2).reshape({1, 12, 70}), expected), 1e-6);
  EXPECT_TRUE(window.narrow(2, 0, 2).eq(1).all().item<bool>()) << "wrote beside its view";
}

TEST(ChannelRmsNormTest, BlackPixelsStayBlack) {
  at::Tensor out = at::ones({1, 4, 3});
  ChannelRmsNormSilu(at::zeros({1, 4, 3}), at::ones({4}), out);
  EXPECT_TRUE(out.eq(0).all().item<bool>());
}

TEST(ChannelRmsNormTest, LengthsOfBFloat16AreFloat) {
  // 1 and twice 2^-8: bf16 would drop the small squares, and round the length 1.0039 to 1.
  at::Tensor x = at::zeros({1, 16, 1}, at::kBFloat16);
  x.select(1, 0).fill_(1.0);
  x.narrow(1, 1, 2).fill_(0.0625);
  const at::Tensor gamma = at::ones({16}, at::kBFloat16);
  EXPECT_LE(RelativeError(ChannelRmsNorm(x, gamma), Expected(x, gamma, false)), 1e-3);
}

TEST(ChannelRmsNormTest, CpuTensorsNeverReachTheKernel) {
  VaeCudaOps& ops = GetVaeCudaOps();
  const VaeCudaOps before = ops;
  ops.channel_rms_norm_silu = [](const at::Tensor&, const at::Tensor&, const at::Tensor&) {
    ADD_FAILURE() << "the kernel was called";
    return true;
  };
  at::Tensor out = at::zeros({1, 4, 3});
  ChannelRmsNormSilu(at::ones({1, 4, 3}), at::ones({4}), out);
  ops = before;
  EXPECT_GT(out.min().item<float>(), 0);
}

}  // namespace
}  // namespace wan
