// The least speed of jobs on a device without measurements.
#pragma once

#include <string_view>

namespace wan {

// Returns floating-point operations a second for a GPU with this name, as the driver gives it, that
// computes in `dtype` ("bf16" or "fp32"). For known cards it is the share of their published rate
// that whole jobs reach; unknown cards are assumed to be slow.
double AssumedGpuRate(std::string_view name, std::string_view dtype);

// The same for this number of a processor's cores.
double AssumedCpuRate(int cores, std::string_view dtype);

}  // namespace wan
