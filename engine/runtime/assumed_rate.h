// How fast jobs run at least on a device of which nothing has been measured yet.
#pragma once

#include <string_view>

namespace wan {

// Returns floating-point operations a second for a GPU with this name, as the driver gives it, that
// computes in `dtype` ("bf16" or "fp32"). Known cards have a share of their published rate of dense
// products that all stages of a job reach together; others are taken for slow ones.
double AssumedGpuRate(std::string_view name, std::string_view dtype);

// The same for this number of a processor's cores.
double AssumedCpuRate(int cores, std::string_view dtype);

}  // namespace wan
