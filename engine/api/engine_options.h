// Settings that apply to every job of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/guidance_batching.h"
#include "engine/api/h264.h"
#include "engine/api/quality.h"
#include "engine/api/residency.h"
#include "engine/api/vae_precision.h"

namespace wan {

// Filled in once, by the code that starts an engine. The struct is passed on unchanged (to the
// server's settings and to every loaded model), so a new setting is a member here plus the code
// that uses it.
struct EngineOptions {
  std::string dtype;    // "fp32" or "bf16"; empty: fp32 on the CPU, bf16 on a GPU
  int cpu_threads = 0;  // CPU threads per operator; 0: one per core
  // Where weights are kept. Components not listed have the policy kAuto.
  std::vector<ComponentResidency> residency;
  // Most device memory, in bytes, that the process uses, as if the card were smaller. 0: all memory
  // that is free when the engine starts.
  uint64_t device_memory_limit = 0;
  // Measure SM activity with the driver's GPM counters. If false, the share of time in which any
  // kernel ran is reported instead.
  bool gpm = true;
  // The quality of requests that do not set it.
  Quality quality = Quality::kExact;
  // The autoencoder's precision for requests that do not set it. Unset: DefaultVaePrecision.
  std::optional<VaePrecision> vae_precision;
  // On a GPU, record and replay forwards of videos so small that launching kernels takes longer
  // than running them. The results have the same bits.
  bool record_forwards = true;
  // Whether a guided step runs both forwards as one batch.
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  // How MP4 files are encoded. The rate factor applies to requests that do not set one.
  H264Options h264;
};

}  // namespace wan
