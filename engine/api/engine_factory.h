// Makes the engine that runs real models. The server reaches the implementation only through here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/engine_options.h"

namespace wan {

// Initialises the devices of a group, one rank each, and returns an engine without models:
// {"cuda:0", "cuda:1"}; {"cpu"}. All are GPUs, each once, or all are "cpu", whose ranks are
// threads. INVALID_ARGUMENT names a device or an option that is wrong; UNAVAILABLE names the part
// that is missing (the device, the driver, libwan_cuda.so).
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const std::vector<std::string>& devices,
                                                      const EngineOptions& options);

}  // namespace wan
