// The operators that move values between channels and frames, rows and columns, against their
// definitions, value by value.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <tuple>

#include "engine/ops/average_down_3d.h"
#include "engine/ops/duplicate_up_3d.h"
#include "engine/ops/nearest_upsample.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

// A tensor [1, C, T, H, W] by index.
class Values {
 public:
  explicit Values(const at::Tensor& x) : x_(x.contiguous()) {}
  float& operator()(int64_t c, int64_t t, int64_t h, int64_t w) {
    return x_.mutable_data_ptr<float>()[((c * x_.size(2) + t) * x_.size(3) + h) * x_.size(4) + w];
  }

 private:
  at::Tensor x_;
};

at::Tensor ChannelsLast(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast3d);
}

// in, out, time factor, space factor, frames of x
using Case = std::tuple<int, int, int, int, int>;

class AverageDown3dTest : public testing::TestWithParam<Case> {};

TEST_P(AverageDown3dTest, EqualsTheDefinition) {
  const auto [in, out, ft, fs, frames] = GetParam();
  const at::Tensor x = at::randn({1, in, frames, 4, 6});
  const int out_frames = (frames + ft - 1) / ft;
  const int missing = out_frames * ft - frames;
  const int values = in * ft * fs * fs;
  const int group = values / out;
  const at::Tensor expected = at::zeros({1, out, out_frames, 4 / fs, 6 / fs});
  Values from(x);
  Values to(expected);
  for (int i = 0; i < values; ++i) {
    const int c = i / (ft * fs * fs);
    const int dt = i / (fs * fs) % ft;
    const int dh = i / fs % fs;
    const int dw = i % fs;
    for (int t = 0; t < out_frames; ++t) {
      if (t * ft + dt < missing) continue;
      for (int h = 0; h < 4 / fs; ++h) {
        for (int w = 0; w < 6 / fs; ++w) {
          to(i / group, t, h, w) +=
              from(c, t * ft + dt - missing, h * fs + dh, w * fs + dw) / group;
        }
      }
    }
  }
  EXPECT_LE(RelativeError(AverageDown3d(x, out, ft, fs), expected), 1e-6);
  EXPECT_LE(RelativeError(AverageDown3d(ChannelsLast(x), out, ft, fs), expected), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Each, AverageDown3dTest,
                         testing::Values(Case{4, 4, 1, 2, 4}, Case{4, 8, 2, 2, 4},
                                         Case{4, 8, 2, 2, 1}, Case{4, 4, 2, 2, 2},
                                         Case{4, 4, 1, 1, 1}, Case{4, 2, 2, 2, 1}));

class AddDuplicateUp3dTest : public testing::TestWithParam<Case> {};

TEST_P(AddDuplicateUp3dTest, EqualsTheDefinition) {
  const auto [in, out, ft, fs, frames] = GetParam();
  ASSERT_TRUE(SupportsDuplicateUp3d(in, out, ft, fs));
  const at::Tensor x = at::randn({1, in, frames, 3, 2});
  const at::Tensor before = at::randn({1, out, frames * ft, 3 * fs, 2 * fs});
  const at::Tensor expected = before.clone();
  const int repeats = out * ft * fs * fs / in;
  Values from(x);
  Values to(expected);
  for (int c = 0; c < out; ++c) {
    for (int t = 0; t < frames * ft; ++t) {
      for (int h = 0; h < 3 * fs; ++h) {
        for (int w = 0; w < 2 * fs; ++w) {
          const int value = ((c * ft + t % ft) * fs + h % fs) * fs + w % fs;
          to(c, t, h, w) += from(value / repeats, t / ft, h / fs, w / fs);
        }
      }
    }
  }
  at::Tensor y = before.clone();
  AddDuplicateUp3d(y, x, ft, fs);
  EXPECT_TRUE(at::equal(y, expected));

  at::Tensor y_last = ChannelsLast(before.clone());
  AddDuplicateUp3d(y_last, ChannelsLast(x), ft, fs);
  EXPECT_TRUE(at::equal(y_last, expected));

  if (frames > 1) return;
  // A video's first chunk lacks all but the last frame of its cell.
  at::Tensor first = before.narrow(2, ft - 1, 1).clone();
  AddDuplicateUp3d(first, x, ft, fs);
  EXPECT_TRUE(at::equal(first, expected.narrow(2, ft - 1, 1)));
}

INSTANTIATE_TEST_SUITE_P(Each, AddDuplicateUp3dTest,
                         testing::Values(Case{8, 8, 2, 2, 1}, Case{8, 8, 2, 2, 3},
                                         Case{8, 4, 1, 2, 2}, Case{8, 4, 2, 2, 2},
                                         Case{8, 4, 2, 2, 1}, Case{8, 2, 1, 2, 2},
                                         Case{8, 1, 2, 2, 1}, Case{8, 8, 1, 2, 2}));

TEST(SupportsDuplicateUp3dTest, RefusesWidthsThatDoNotDivide) {
  EXPECT_FALSE(SupportsDuplicateUp3d(3, 1, 1, 2));
  EXPECT_FALSE(SupportsDuplicateUp3d(4, 8, 1, 2));  // more channels out than in
  EXPECT_FALSE(SupportsDuplicateUp3d(0, 4, 1, 2));
}

class NearestUpsampleTest : public testing::TestWithParam<int> {};

TEST_P(NearestUpsampleTest, EqualsTheDefinition) {
  const int ft = GetParam();
  const int channels = 3;
  const at::Tensor x = at::randn({1, ft * channels, 2, 4, 5});
  const at::Tensor expected = at::zeros({1, channels, 2 * ft, 8, 10});
  Values from(x);
  Values to(expected);
  for (int c = 0; c < channels; ++c) {
    for (int t = 0; t < 2 * ft; ++t) {
      for (int h = 0; h < 8; ++h) {
        for (int w = 0; w < 10; ++w) {
          to(c, t, h, w) = from(t % ft * channels + c, t / ft, h / 2, w / 2);
        }
      }
    }
  }
  EXPECT_TRUE(at::equal(NearestUpsample(x, ft), expected));
  const at::Tensor last = NearestUpsample(ChannelsLast(x), ft);
  EXPECT_TRUE(at::equal(last, expected));
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast3d));
}

INSTANTIATE_TEST_SUITE_P(TimeFactors, NearestUpsampleTest, testing::Values(1, 2));

}  // namespace
}  // namespace wan
