#include "engine/pipeline/latents_input.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "engine/weights/weight_filler.h"

namespace wan {

at::Tensor ToLatents(const StoredTensor& stored, const c10::Device& device) {
  // Copy the bytes, because in their file they may lie at any address.
  at::Tensor tensor = at::empty(stored.shape, ToScalarType(stored.dtype));
  std::memcpy(tensor.mutable_data_ptr(), stored.bytes.data(), stored.bytes.size());
  return tensor.to(at::kFloat).to(device);
}

at::Tensor MixNoise(const at::Tensor& clean, const at::Tensor& noise, float sigma) {
  return (1 - sigma) * clean + sigma * noise;
}

}  // namespace wan
