// Makes the engine that runs real models. The only door from the server into the implementation.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"

namespace wan {

struct EngineOptions {
  std::string device = "cpu";  // "cpu" or "cuda:N"
  std::string dtype;           // "fp32" or "bf16"; empty: fp32 on the CPU, bf16 on a GPU
  int cpu_threads = 0;         // threads of one operator on the CPU; 0: one a core
};

// Brings the device up. UNAVAILABLE or INVALID_ARGUMENT names what is missing (no such device,
// driver, libwan_cuda.so).
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const EngineOptions& options);

}  // namespace wan
