#include "engine/runtime/canary.h"

#include <ATen/TensorOperators.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sin.h>
#include <c10/core/DeviceGuard.h>
#include <torch/version.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/api/errors.h"
#include "engine/device/plugin_loader.h"
#include "engine/device/torch_errors.h"
#include "engine/ops/attention.h"
#include "engine/ops/causal_conv3d.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/rms_norm_rope.h"
#include "engine/ops/rotary_table.h"

namespace wan {
namespace {

constexpr std::array<int64_t, 3> kGrid = {2, 8, 16};
constexpr int64_t kTokens = 2 * 8 * 16;
constexpr int64_t kHeads = 4;
constexpr int64_t kHeadDim = 128;
constexpr int64_t kDim = kHeads * kHeadDim;
constexpr double kEpsilon = 1e-6;

// The largest relative errors that rounding explains: bf16 rounds each number by 4e-3, TF32 by
// 5e-4.
constexpr double kToleranceBf16 = 3e-2;
constexpr double kToleranceFp32 = 3e-3;

// Returns a wave of numbers that is the same for every device, because the CPU computes it. The
// wave's period divides no dimension of a shape.
at::Tensor Wave(const std::vector<int64_t>& shape, double frequency, double amplitude) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::TensorOptions().dtype(at::kDouble))
      .mul_(frequency)
      .sin_()
      .mul_(amplitude)
      .to(at::kFloat)
      .view(shape);
}

std::string Hex(uint64_t value) { return absl::StrFormat("%016x", value); }

// Hashes with FNV-1a, which identifies data but does not protect against forgery.
constexpr uint64_t kHashBasis = 0xcbf29ce484222325;

uint64_t Hash(uint64_t hash, const void* data, size_t size) {
  const auto* const bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// Returns a hash of a file's bytes. A setup includes the hashes of program and plug-in, because
// different code may give different bits.
std::string FingerprintOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> part(size_t{1} << 20);
  uint64_t hash = kHashBasis;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash = Hash(hash, part.data(), static_cast<size_t>(file.gcount()));
  }
  return Hex(hash);
}

absl::StatusOr<std::string> SetupOf(at::Device device, at::ScalarType dtype) {
  std::array<char, 256> card{};
  const CudaPlugin* const plugin = LoadedCudaPlugin();
  if (plugin != nullptr && plugin->describe(device.index(), card.data(), card.size()) != 0) {
    return DeviceLostError(absl::StrCat("the driver could not describe the device ", device.str()));
  }
  return absl::StrCat(card.data(), ", LibTorch ", TORCH_VERSION, ", cuDNN ",
                      plugin == nullptr ? 0 : at::detail::getCUDAHooks().versionCuDNN(), ", ",
                      c10::toString(dtype), ", program ", FingerprintOf("/proc/self/exe"),
                      ", kernels ", FingerprintOf(CudaPluginPath()));
}

}  // namespace

std::string DigestOf(const at::Tensor& values) {
  const at::Tensor host = values.to(at::kCPU).contiguous();
  return Hex(Hash(kHashBasis, host.const_data_ptr(), host.nbytes()));
}

at::Tensor ComputeCanary(at::Device device, at::ScalarType dtype) {
  const auto weight = [&](const std::vector<int64_t>& shape, double frequency) {
    return Wave(shape, frequency, 0.05).to(device, dtype);
  };
  const auto floats = [&](const std::vector<int64_t>& shape, double frequency, double amplitude) {
    return Wave(shape, frequency, amplitude).to(device);
  };
  at::Tensor x = floats({kTokens, kDim}, 0.7311, 1);

  at::Tensor normed = at::empty({kTokens, kDim}, x.options().dtype(dtype));
  LayerNormModulate(x, floats({1, kDim}, 1.137, 1), floats({1, kDim}, 0.371, 0.2), {}, kEpsilon,
                    normed);
  at::Tensor qkv = at::linear(normed, weight({3 * kDim, kDim}, 1.9173));
  at::Tensor query_key = qkv.narrow(1, 0, 2 * kDim);
  RmsNormRope(query_key, floats({2, kDim}, 0.533, 1), kEpsilon,
              RotaryTable(kGrid, kHeadDim, device));
  const at::Tensor parts = qkv.view({1, kTokens, 3, kHeads, kHeadDim});
  const at::Tensor attended =
      Attention(parts.select(2, 0), parts.select(2, 1), parts.select(2, 2)).view({kTokens, kDim});
  x = x + at::linear(attended, weight({kDim, kDim}, 2.371)).to(at::kFloat);
  const at::Tensor hidden = at::gelu(at::linear(x.to(dtype), weight({2 * kDim, kDim}, 0.9417)),
                                     /*approximate=*/"tanh");
  x = x + at::linear(hidden, weight({kDim, 2 * kDim}, 1.291)).to(at::kFloat);

  // Compute the convolutions as the autoencoder does: in fp32 and, if `dtype` is not fp32 on a GPU,
  // in TF32 and fp16. With this many channels a Hopper GPU uses our own kernel, and other GPUs use
  // cuDNN's.
  constexpr int64_t kChannels = 96;
  const bool rounds = dtype != at::kFloat && device.is_cuda();
  const at::Tensor kernel = floats({kChannels, kDim, 3, 3, 3}, 1.617, 0.02);
  const at::Tensor bias = floats({kChannels}, 0.3, 0.1);
  const at::Tensor video = x.view({1, kGrid[0], kGrid[1], kGrid[2], kDim}).permute({0, 4, 1, 2, 3});
  std::vector<at::Tensor> results{x.flatten()};
  for (const at::ScalarType precision : {at::kFloat, rounds ? at::kHalf : at::kFloat}) {
    const CausalConv3d convolution(kernel.to(precision), bias.to(precision), /*time_stride=*/1,
                                   /*allow_tf32=*/dtype != at::kFloat);
    at::Tensor history;
    const at::Tensor convolved = convolution(video.to(precision), history);
    results.push_back(convolved.to(at::kFloat).contiguous().flatten());
  }
  return at::cat(results);
}

absl::StatusOr<std::string> JudgeCanary(const at::Tensor& first, const at::Tensor& second,
                                        const at::Tensor& expected, at::ScalarType dtype) {
  const at::Tensor result = first.to(at::kCPU);
  const std::string digest = DigestOf(result);
  if (const std::string other = DigestOf(second); other != digest) {
    return DeviceLostError(absl::StrCat(
        "the device gave two results for the same computation: ", digest, " and ", other));
  }
  const double tolerance = dtype == at::kFloat ? kToleranceFp32 : kToleranceBf16;
  const double error =
      (at::linalg_vector_norm(result - expected, 2) / at::linalg_vector_norm(expected, 2))
          .item<double>();
  if (error <= tolerance) return digest;
  // A NaN is not <= the tolerance, so it fails as well.
  return DeviceLostError(
      absl::StrCat("the device computes wrongly: its result has a relative "
                   "error of ",
                   error, " against the CPU's, but rounding explains at most ", tolerance));
}

absl::StatusOr<DeviceCanary> RunDeviceCanary(at::Device device, at::ScalarType dtype) {
  DeviceCanary canary;
  absl::Status status = CatchTorchErrors("checking the device", [&]() -> absl::Status {
    absl::StatusOr<std::string> setup = SetupOf(device, dtype);
    if (!setup.ok()) return setup.status();
    canary.setup = *std::move(setup);
    const at::Tensor first = ComputeCanary(device, dtype);
    const at::Tensor second = ComputeCanary(device, dtype);
    absl::StatusOr<std::string> digest =
        JudgeCanary(first, second, ComputeCanary(at::kCPU, at::kFloat), dtype);
    if (!digest.ok()) return digest.status();
    canary.digest = *std::move(digest);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return canary;
}

absl::StatusOr<DeviceCanary> RunGroupCanary(at::Device device, const std::vector<at::Device>& peers,
                                            at::ScalarType dtype) {
  absl::StatusOr<DeviceCanary> first = RunDeviceCanary(device, dtype);
  if (!first.ok()) return first;
  for (const at::Device& peer : peers) {
    const c10::DeviceGuard on_device(peer);
    const absl::StatusOr<DeviceCanary> other = RunDeviceCanary(peer, dtype);
    if (!other.ok()) return other.status();
    if (other->setup == first->setup && other->digest != first->digest) {
      return DeviceLostError(absl::StrCat(
          "the devices ", device.str(), " and ", peer.str(),
          " gave two results for the same computation: ", first->digest, " and ", other->digest));
    }
  }
  return first;
}

}  // namespace wan
