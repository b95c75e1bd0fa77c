// A small computation that shows whether a device computes as it should.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"

namespace wan {

// Runs one block of a small transformer and one causal convolution, with fixed weights, on `device`
// in `dtype`: the operators and libraries that jobs use. It takes milliseconds besides what the
// libraries need to start. UNAVAILABLE (DEVICE_LOST) if the result is farther from the CPU's fp32
// than rounding explains, if two runs differ, or if the device does not compute.
absl::StatusOr<DeviceCanary> RunDeviceCanary(at::Device device, at::ScalarType dtype);

// The comparisons without the device: `first` and `second` are two runs, on any device.
absl::StatusOr<std::string> JudgeCanary(const at::Tensor& first, const at::Tensor& second,
                                        const at::Tensor& expected, at::ScalarType dtype);

// The computation alone: fp32 [n], on `device`.
at::Tensor ComputeCanary(at::Device device, at::ScalarType dtype);

}  // namespace wan
