// A lower bound of the speed of jobs on a device that has not been measured yet.
#pragma once

#include <string_view>

namespace wan {

// Returns the floating-point operations per second that jobs reach on a GPU that the driver calls
// `name`, in `dtype` ("bf16" or "fp32"). For a known card this is the part of its published rate
// that whole jobs reach. Unknown cards are assumed to be slow.
double AssumedGpuRate(std::string_view name, std::string_view dtype);

// Returns the floating-point operations per second for a CPU of which jobs may use `cores` cores.
double AssumedCpuRate(int cores, std::string_view dtype);

}  // namespace wan
