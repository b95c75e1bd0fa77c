// Runs a small computation that shows whether a device computes correctly.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"

namespace wan {

// Runs one block of a small transformer and two causal convolutions with fixed weights on `device`
// in `dtype`, with the operators and libraries that jobs use. Takes milliseconds, besides the time
// in which the libraries start. UNAVAILABLE (DEVICE_LOST) if the result differs from the CPU's fp32
// result by more than rounding explains, if two runs differ, or if the device does not compute.
absl::StatusOr<DeviceCanary> RunDeviceCanary(at::Device device, at::ScalarType dtype);

// Compares two runs, `first` and `second`, with each other and with `expected`, and returns their
// digest. Statuses as above. Separate so that tests need no broken device.
absl::StatusOr<std::string> JudgeCanary(const at::Tensor& first, const at::Tensor& second,
                                        const at::Tensor& expected, at::ScalarType dtype);

// Runs the computation once and returns its result, fp32 [n] on `device`.
at::Tensor ComputeCanary(at::Device device, at::ScalarType dtype);

// RunDeviceCanary for each device of a group. Returns the first one's result; DEVICE_LOST, naming
// the devices, if two of the same setup differ.
absl::StatusOr<DeviceCanary> RunGroupCanary(at::Device device, const std::vector<at::Device>& peers,
                                            at::ScalarType dtype);

}  // namespace wan
