// The lowest expected speed of jobs on a device that has not been measured.
#pragma once

#include <string_view>

namespace wan {

// Returns floating-point operations per second of jobs on a GPU with the driver's name `name`, in
// `dtype` ("bf16" or "fp32"). For known cards this is the part of the published rate that whole
// jobs reach; unknown cards are assumed to be slow.
double AssumedGpuRate(std::string_view name, std::string_view dtype);

// Returns the same for `cores` cores of a CPU.
double AssumedCpuRate(int cores, std::string_view dtype);

}  // namespace wan
