#include "engine/ops/rotary_table.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>

#include <vector>

namespace wan {

at::Tensor RotaryTable(const std::array<int64_t, 3>& grid, int64_t head_dim, at::Device device) {
  const int64_t plane = 2 * (head_dim / 6);
  const std::array<int64_t, 3> channels{head_dim - 2 * plane, plane, plane};

  std::vector<at::Tensor> cosines;
  std::vector<at::Tensor> sines;
  for (int axis = 0; axis < 3; ++axis) {
    const at::Tensor exponent = at::arange(0, channels[axis], 2, at::kDouble) / channels[axis];
    const at::Tensor position = at::arange(grid[axis], at::kDouble);
    const at::Tensor angle = at::outer(position, at::pow(10000.0, exponent).reciprocal());
    // Angles depend on the position along one axis and are broadcast along the other two.
    std::array<int64_t, 4> shape{1, 1, 1, angle.size(1)};
    shape[axis] = grid[axis];
    const std::array<int64_t, 4> tokens{grid[0], grid[1], grid[2], angle.size(1)};
    const auto expand = [&](const at::Tensor& table) {
      return table.to(at::kFloat).to(device).view(shape).expand(tokens);
    };
    cosines.push_back(expand(at::cos(angle)));
    sines.push_back(expand(at::sin(angle)));
  }
  cosines.insert(cosines.end(), sines.begin(), sines.end());
  return at::cat(cosines, -1).view({-1, head_dim});
}

}  // namespace wan
