#include "engine/schedulers/seeded_noise.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/randn.h>

namespace wan {

at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device, int earlier) {
  // Use a new generator, so that nothing else draws from it between setting the seed and drawing
  // the noise.
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(static_cast<uint64_t>(seed));
  const at::TensorOptions options = at::TensorOptions().device(device).dtype(at::kFloat);
  for (int draw = 0; draw < earlier; ++draw) at::randn(shape, generator, options);
  return at::randn(shape, generator, options);
}

}  // namespace wan
