// The choices that hold for every job of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/guidance_batching.h"
#include "engine/api/h264.h"
#include "engine/api/residency.h"
#include "engine/api/vae_precision.h"

namespace wan {

// Whoever starts an engine fills this in once. The same struct is passed on to where a choice acts
// (the server's settings hold it, and so does every loaded model), so a new choice is a member here
// and a line where it acts.
struct EngineOptions {
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
  // The autoencoder's precision for requests that do not set it. Unset: DefaultVaePrecision.
  std::optional<VaePrecision> vae_precision;
  // On a GPU, record forwards of videos that are so small that launching kernels takes longer than
  // they do, and replay them. The results have the same bits.
  bool record_forwards = true;
  // Whether both forwards of a guided step run as one batch.
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  // How MP4 files are encoded. The rate factor is that of requests that do not state one.
  H264Options h264;
};

}  // namespace wan
