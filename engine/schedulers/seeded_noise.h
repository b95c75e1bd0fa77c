// The noise that belongs to a seed.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns noise in fp32: the first draw of upstream's generator,
// torch.Generator(device).manual_seed(seed). Throws c10::Error as LibTorch's operators do. Any
// thread may call it.
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device);

// Successive draws of DrawNoise's generator, for samplers that add noise in each step. A draw
// depends only on the seed, the device, the shape and the draw's number. Not thread-safe.
class NoiseDraws {
 public:
  NoiseDraws(int64_t seed, at::Device device);

  // Returns draw number `index`. Draw 0 is the noise that DrawNoise returns. All draws must have
  // one shape. A generator cannot jump, so Draw first makes all earlier draws that were not made
  // yet. So a run from the beginning makes no draw twice, and a run that continues makes the
  // earlier draws once. Throws c10::Error as LibTorch's operators do.
  at::Tensor Draw(at::IntArrayRef shape, int index);

  int64_t seed() const { return seed_; }
  at::Device device() const { return device_; }

 private:
  void Begin();

  const int64_t seed_;
  const at::Device device_;
  at::Generator generator_;
  int made_ = 0;  // draws that the generator has made
};

}  // namespace wan
