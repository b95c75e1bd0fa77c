// Makes the engine that runs real models. The server reaches the implementation only through here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/guidance_batching.h"
#include "engine/api/h264.h"
#include "engine/api/residency.h"
#include "engine/api/vae_precision.h"

namespace wan {

struct EngineOptions {
  // The devices of the group, one rank each: {"cuda:0", "cuda:1"}; {"cpu"}. All GPUs, each once, or
  // all "cpu", whose ranks are threads.
  std::vector<std::string> devices = {"cpu"};
  std::string dtype;    // "fp32" or "bf16"; empty: fp32 on the CPU, bf16 on a GPU
  int cpu_threads = 0;  // threads that compute one operator on the CPU; 0: one per core
  // Where weights live. A component that is not named here has the policy kAuto.
  std::vector<ComponentResidency> residency;
  // The most device memory, in bytes, that the process uses, as if the card were smaller. 0: all
  // memory that is free when the engine starts.
  uint64_t device_memory_limit = 0;
  // Measure SM activity with the driver's GPM counters. If not, the share of time in which any
  // kernel ran is reported in its place.
  bool gpm = true;
  // How exactly the autoencoder computes where a request does not say it. Unset:
  // DefaultVaePrecision.
  std::optional<VaePrecision> vae_precision;
  // On a GPU, record forwards of videos that are so small that launching kernels takes longer than
  // they do, and replay them. The results have the same bits.
  bool record_forwards = true;
  // Whether both forwards of a guided step run as one batch.
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  // How MP4 files are encoded.
  H264Options h264;
};

// Initialises the device and returns an engine without models. INVALID_ARGUMENT names an option
// that is wrong; UNAVAILABLE names the part that is missing (the device, the driver,
// libwan_cuda.so).
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const EngineOptions& options);

}  // namespace wan
