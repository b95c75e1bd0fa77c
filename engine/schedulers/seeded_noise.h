// The noise that belongs to a seed.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace wan {

// Returns noise in fp32: what upstream's generator, torch.Generator(device).manual_seed(seed),
// draws first. Throws c10::Error as LibTorch's operators do. Any thread may call it.
at::Tensor DrawNoise(at::IntArrayRef shape, int64_t seed, at::Device device);

// What the same generator draws again and again, for samplers that add noise in each step. A draw
// depends on the seed, the device, the shape and its number alone. Not thread-safe.
class NoiseDraws {
 public:
  NoiseDraws(int64_t seed, at::Device device);

  // Returns draw number `index`, counted from 0, which is DrawNoise's. All draws must have one
  // shape. A generator cannot jump, so the draws before it are made if they have not been yet: in a
  // run from its beginning no draw is made twice, and a run that goes on makes the earlier draws
  // once. Throws c10::Error as LibTorch's operators do.
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
