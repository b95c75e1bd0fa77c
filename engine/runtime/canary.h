// Checks by a small computation whether a device computes correctly.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"

namespace wan {

// Runs a block of a small transformer and two causal convolutions with fixed weights on `device` in
// `dtype`. Block and convolutions use the same operators and libraries as jobs. The call takes
// milliseconds, plus the time in which the libraries start. UNAVAILABLE (DEVICE_LOST) if the result
// differs from the CPU's fp32 result by more than rounding explains, if two runs give different
// results, or if the device fails.
absl::StatusOr<DeviceCanary> RunDeviceCanary(at::Device device, at::ScalarType dtype);

// Compares the results `first` and `second` of two runs with each other and with `expected`.
// Returns their digest. Returns the errors of RunDeviceCanary. Tests call this function directly,
// because they have no broken device.
absl::StatusOr<std::string> JudgeCanary(const at::Tensor& first, const at::Tensor& second,
                                        const at::Tensor& expected, at::ScalarType dtype);

// Returns a digest of the tensor's bits, 16 hexadecimal digits. It identifies the bits but does not
// protect against forgery.
std::string DigestOf(const at::Tensor& values);

// Runs the computation once and returns its result, fp32 [n] on `device`.
at::Tensor ComputeCanary(at::Device device, at::ScalarType dtype);

// Calls RunDeviceCanary for each device of a group, and returns the first device's result.
// DEVICE_LOST, naming the devices, if two devices with the same setup give different results.
absl::StatusOr<DeviceCanary> RunGroupCanary(at::Device device, const std::vector<at::Device>& peers,
                                            at::ScalarType dtype);

}  // namespace wan
