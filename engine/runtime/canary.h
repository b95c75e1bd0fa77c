// Checks with a small computation whether a device computes correctly.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"

namespace wan {

// Runs a block of a small transformer and two causal convolutions with fixed weights on `device` in
// `dtype`, with the same operators and libraries as jobs. Takes milliseconds plus the libraries'
// start. UNAVAILABLE (DEVICE_LOST) if the result differs from the CPU's fp32 result by more than
// rounding explains, if two runs differ, or if the device fails.
absl::StatusOr<DeviceCanary> RunDeviceCanary(at::Device device, at::ScalarType dtype);

// Compares the results `first` and `second` of two runs with each other and with `expected`, and
// returns their digest. Fails as RunDeviceCanary does; tests call it directly, because they have no
// broken device.
absl::StatusOr<std::string> JudgeCanary(const at::Tensor& first, const at::Tensor& second,
                                        const at::Tensor& expected, at::ScalarType dtype);

// Runs the computation once and returns its result, fp32 [n] on `device`.
at::Tensor ComputeCanary(at::Device device, at::ScalarType dtype);

// Calls RunDeviceCanary for each device of a group, and returns the first device's result.
// DEVICE_LOST, naming the devices, if two devices of the same setup have different results.
absl::StatusOr<DeviceCanary> RunGroupCanary(at::Device device, const std::vector<at::Device>& peers,
                                            at::ScalarType dtype);

}  // namespace wan
