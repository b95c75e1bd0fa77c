#include "engine/ops/causal_conv3d.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

struct Kernel {
  const char* name;
  std::vector<int64_t> size;
  int64_t time_stride;
};

void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.name; }

class CausalConv3dTest : public testing::TestWithParam<Kernel> {
 protected:
  static constexpr int64_t kIn = 3;
  static constexpr int64_t kOut = 5;

  const Kernel& kernel() const { return GetParam(); }

  // The definition: zeros before the first frame, then an ordinary convolution of everything.
  at::Tensor Expected(const at::Tensor& x) const {
    const std::vector<int64_t>& k = kernel().size;
    const at::Tensor padded =
        at::constant_pad_nd(x, {0, 0, 0, 0, k[0] - kernel().time_stride, 0}, /*value=*/0);
    return at::conv3d(padded, weight_, bias_, /*stride=*/{kernel().time_stride, 1, 1},
                      /*padding=*/{0, k[1] / 2, k[2] / 2});
  }

  at::Tensor weight_ = at::randn({kOut, kIn, kernel().size[0], kernel().size[1], kernel().size[2]});
  at::Tensor bias_ = at::randn({kOut});
};

TEST_P(CausalConv3dTest, ChunksGiveWhatTheWholeVideoGives) {
  const CausalConv3d conv(weight_, bias_, kernel().time_stride, /*allow_tf32=*/false);
  const at::Tensor x = at::randn({1, kIn, 8, 5, 4});
  at::Tensor history;
  std::vector<at::Tensor> parts;
  for (const auto& [begin, count] : {std::pair{0, 2}, {2, 4}, {6, 2}}) {
    parts.push_back(conv(x.narrow(2, begin, count), history));
  }
  EXPECT_LE(RelativeError(at::cat(parts, /*dim=*/2), Expected(x)), 1e-6);
  EXPECT_EQ(history.size(2), conv.history_frames());
  EXPECT_TRUE(at::equal(history, x.narrow(2, 8 - conv.history_frames(), conv.history_frames())));
}

TEST_P(CausalConv3dTest, RememberedFramesStandBeforeTheNextChunk) {
  const CausalConv3d conv(weight_, bias_, kernel().time_stride, /*allow_tf32=*/false);
  const at::Tensor x = at::randn({1, kIn, 6, 5, 4});
  at::Tensor convolved;
  conv(x.narrow(2, 0, 4), convolved);
  at::Tensor remembered;
  conv.Remember(x.narrow(2, 0, 4), remembered);
  const at::Tensor last = x.narrow(2, 4, 2);
  EXPECT_TRUE(at::equal(conv(last, remembered), conv(last, convolved)));
}

INSTANTIATE_TEST_SUITE_P(Kernels, CausalConv3dTest,
                         testing::Values(Kernel{"3x3x3", {3, 3, 3}, 1},
                                         Kernel{"3x1x1", {3, 1, 1}, 1},
                                         Kernel{"3x1x1 every second frame", {3, 1, 1}, 2}));

TEST(CausalConv3dWindowTest, SingleFramesFillTheHistoryOneByOne) {
  const CausalConv3d conv(at::randn({2, 3, 3, 3, 3}), at::randn({2}), /*time_stride=*/1,
                          /*allow_tf32=*/false);
  const at::Tensor x = at::randn({1, 3, 4, 3, 3});
  at::Tensor history;
  std::vector<at::Tensor> parts;
  for (int64_t t = 0; t < 4; ++t) parts.push_back(conv(x.narrow(2, t, 1), history));
  at::Tensor fresh;
  EXPECT_LE(RelativeError(at::cat(parts, /*dim=*/2), conv(x, fresh)), 1e-6);
}

TEST(CausalConv3dWindowTest, HistoryDoesNotKeepTheWindowAlive) {
  const CausalConv3d conv(at::randn({2, 3, 3, 3, 3}), at::randn({2}), /*time_stride=*/1,
                          /*allow_tf32=*/false);
  at::Tensor history;
  CausalWindow window = conv.OpenWindow(history, /*frames=*/4, /*height=*/3, /*width=*/3);
  at::Tensor written;
  window.Fill([&](int64_t first, const at::Tensor& frames) {
    EXPECT_EQ(first, 0);
    EXPECT_EQ(frames.size(2), 4);
    written = frames.normal_();
  });
  const at::Tensor last = written.narrow(2, 2, 2).clone();
  conv.Run(std::move(window), history);
  EXPECT_FALSE(history.is_alias_of(written));
  written.zero_();
  EXPECT_TRUE(at::equal(history, last));
}

}  // namespace
}  // namespace wan
