#include "tests/engine/random_tensor.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

namespace wan {

at::Tensor RandomTensor(at::IntArrayRef shape, uint64_t seed, at::ScalarType dtype, double mean,
                        double deviation) {
  return at::empty(shape, at::kDouble)
      .normal_(mean, deviation, at::detail::createCPUGenerator(seed))
      .to(dtype);
}

at::Tensor RandomIndex(int64_t size, int64_t bound, uint64_t seed) {
  return at::empty({size}, at::kInt).random_(0, bound, at::detail::createCPUGenerator(seed));
}

}  // namespace wan
