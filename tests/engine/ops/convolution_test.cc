#include "engine/ops/convolution.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

struct Case {
  const char* name;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> input;  // [N, 3, ...]
};

// Every convolution of the autoencoders has one of these forms.
const Case kCases[] = {
    {"3x3x3", {3, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 3, 6, 11, 7}},
    {"1x1x1", {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 3, 4, 11, 7}},
    {"3x1x1, every second frame", {3, 1, 1}, {2, 1, 1}, {0, 0, 0}, {1, 3, 7, 5, 4}},
    {"3x3", {3, 3}, {1, 1}, {1, 1}, {4, 3, 11, 7}},
    {"3x3, every second pixel", {3, 3}, {2, 2}, {0, 0}, {4, 3, 13, 9}},
};

// Large inputs are convolved in pieces; with a small limit small ones are, too.
TEST(ConvolutionTest, PiecesGiveWhatTheWholeGives) {
  for (const Case& c : kCases) {
    std::vector<int64_t> weight_shape = {5, 3};
    weight_shape.insert(weight_shape.end(), c.kernel.begin(), c.kernel.end());
    const Convolution convolution(at::randn(weight_shape), at::randn({5}), c.stride, c.padding,
                                  /*allow_tf32=*/false);
    const at::Tensor x =
        at::randn(c.input).contiguous(ConvolutionLayout(static_cast<int64_t>(c.input.size())));
    const at::Tensor whole = convolution(x);
    int pieces = 0;
    for (const int64_t limit : {100'000, 2'000, 1'000, 700, 500, 400}) {
      SCOPED_TRACE(std::string(c.name) + ", " + std::to_string(limit));
      at::Tensor y;
      try {
        y = convolution.InPieces(x, limit);
      } catch (const c10::Error&) {
        continue;  // a row is larger than that
      }
      ++pieces;
      ASSERT_EQ(y.sizes(), whole.sizes());
      EXPECT_EQ(y.strides(), whole.strides());
      EXPECT_LE(RelativeError(y, whole), 1e-6);
    }
    EXPECT_GE(pieces, 3) << c.name;
  }
}

TEST(ConvolutionTest, ARowThatIsTooLargeIsAnError) {
  const Convolution convolution(at::randn({2, 3, 3, 3}), at::randn({2}), {1, 1}, {1, 1},
                                /*allow_tf32=*/false);
  const at::Tensor x = at::randn({1, 3, 9, 100}).contiguous(ConvolutionLayout(4));
  EXPECT_THROW(convolution.InPieces(x, 500), c10::Error);
}

}  // namespace
}  // namespace wan
