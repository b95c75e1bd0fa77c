// Settings that apply to every job of an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/eight_bit_weights.h"
#include "engine/api/exact_blocks.h"
#include "engine/api/guidance_batching.h"
#include "engine/api/h264.h"
#include "engine/api/quality.h"
#include "engine/api/residency.h"
#include "engine/api/vae_precision.h"

namespace wan {

// Only the code that starts an engine fills in this struct. The struct is passed on unchanged to
// the server's settings and to every loaded model. So a new setting needs only a member here and
// the code that uses it.
struct EngineOptions {
  std::string dtype;    // "fp32" or "bf16"; empty: fp32 on a CPU, bf16 on a GPU
  int cpu_threads = 0;  // CPU threads of one operator; 0: one per core
  // Where the weights of each component are kept. Components that are not listed have the policy
  // kAuto.
  std::vector<ComponentResidency> residency;
  // The maximum of device memory, in bytes, that the process may use, as if the card were smaller.
  // 0: all memory that is free when the engine starts.
  uint64_t device_memory_limit = 0;
  // Whether SM activity is measured with the driver's GPM counters. If false, SM activity is the
  // share of time in which any kernel ran.
  bool gpm = true;
  // Components that keep their weights in 8 bits.
  EightBitWeights eight_bit_weights;
  // The quality of requests that do not set a quality. Models that do not support kFast take kHigh
  // instead. Unset: DefaultQuality.
  std::optional<Quality> quality;
  // The transformers' blocks that compute without 8-bit inputs even in videos of quality high and
  // fast. The engine never keeps the weights of these blocks in 8 bits.
  ExactBlocks quality_exact_blocks;
  // Fast jobs run no forward without the prompt after this share of their steps.
  double guidance_until = 1;
  // The autoencoder's precision for requests that do not set it. Unset: the result of
  // DefaultVaePrecision.
  std::optional<VaePrecision> vae_precision;
  // Whether a GPU records and replays forwards of videos that are so small that launching kernels
  // takes longer than running them. The results have the same bits either way.
  bool record_forwards = true;
  // Whether a guided step runs both forwards as one batch.
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  // How MP4 files are encoded. The rate factor applies to requests that do not set their own.
  H264Options h264;
};

}  // namespace wan
