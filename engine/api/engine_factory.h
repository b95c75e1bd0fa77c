// Makes the engine that runs real models. The server includes only this file of engine/runtime.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/engine_options.h"

namespace wan {

// Initialises the devices of a group, one rank each, for example {"cuda:0", "cuda:1"} or {"cpu"},
// and returns an engine without models. `devices` must be different GPUs, or all "cpu". On the CPU
// each rank is a thread. INVALID_ARGUMENT names a wrong device or option. UNAVAILABLE names what is
// missing: a device, the driver or libwan_cuda.so.
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const std::vector<std::string>& devices,
                                                      const EngineOptions& options);

}  // namespace wan
