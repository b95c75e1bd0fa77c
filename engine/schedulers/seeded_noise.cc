#include "engine/schedulers/seeded_noise.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>

namespace wan {

NoiseDraws::NoiseDraws(int64_t seed, at::Device device) : seed_(seed), device_(device) { Begin(); }

void NoiseDraws::Begin() {
  // Use a new generator, so that no other code draws from it.
  generator_ = at::globalContext().defaultGenerator(device_).clone();
  generator_.set_current_seed(static_cast<uint64_t>(seed_));
  made_ = 0;
}

at::Tensor NoiseDraws::Draw(at::IntArrayRef shape, int index) {
  if (index < made_) Begin();
  const at::TensorOptions options = at::TensorOptions().device(device_).dtype(at::kFloat);
  for (; made_ < index; ++made_) at::randn(shape, generator_, options);
  at::Tensor noise = at::randn(shape, generator_, options);
  ++made_;
  return noise;
}

at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device) {
  return NoiseDraws(seed, device).Draw(shape, 0);
}

}  // namespace wan
