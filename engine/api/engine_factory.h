// Makes the engine that runs real models. The only door from the server into the implementation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/residency.h"

namespace wan {

struct EngineOptions {
  std::string device = "cpu";  // "cpu" or "cuda:N"
  std::string dtype;           // "fp32" or "bf16"; empty: fp32 on the CPU, bf16 on a GPU
  int cpu_threads = 0;         // threads of one operator on the CPU; 0: one a core
  // Where weights live; components that are not named choose for themselves (kAuto).
  std::vector<ComponentResidency> residency;
  // The process uses no more of the device than this, in bytes, as if the card were smaller; 0: all
  // that is free when it starts.
  uint64_t device_memory_limit = 0;
};

// Brings the device up. UNAVAILABLE or INVALID_ARGUMENT names what is missing (no such device,
// driver, libwan_cuda.so).
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const EngineOptions& options);

}  // namespace wan
