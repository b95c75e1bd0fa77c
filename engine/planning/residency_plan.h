// Which policy each component gets for one job, and what every stage then holds of the device's
// memory: a pure function of the model, the job and the device. The numbers that it adds up are
// those of the components (engine/models/wan/*_cost.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/residency.h"
#include "engine/checkpoint/model_config.h"
#include "engine/planning/model_family.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_component.h"
#include "engine/planning/tile_geometry.h"

namespace wan {

// What decides a job's activations.
struct MemoryJob {
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  int64_t element_bytes = 4;  // of the compute dtype of transformers and text encoder
  LatentSize latents;
  int64_t tokens = 0;       // of one forward
  int64_t text_tokens = 0;  // of the longer text
  bool guided = true;
  ImageRole image = ImageRole::kNone;
  bool previews = false;
  bool decodes = true;  // false: the job ends with latents, and no frame is made
  // Of the video, for what waits in host memory on its way to the files.
  int64_t frame_pixels = 0;
  int64_t frames = 0;
  int writers = 1;                // files that frames are encoded into
  std::vector<int> expert_steps;  // how many steps each expert takes
  // What merging the job's LoRAs into each expert takes while it computes; empty: there are none.
  std::vector<uint64_t> expert_merging_bytes;
  // Up to so many tokens a batch of two forwards is faster than one after the other.
  int64_t most_tokens_batched = 0;
};

// Locked host memory that reading weights to a GPU takes while it lasts: all buffers of a
// StagedUpload of 16 threads.
inline constexpr uint64_t kReadingBuffersBytes = uint64_t{256} << 20;

struct StageMemory {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t host = 0;         // host memory that the job adds
  uint64_t host_pinned = 0;  // of that, weights that it parks

  uint64_t total() const { return weights + activations; }
};

struct ResidencyChoice {
  std::vector<ResidencyPolicy> policies;  // of the components, none of them kAuto
  bool batched_guidance = false;
  // The next expert's weights come while the one before still computes.
  bool prefetch_experts = false;
  TileGrid decode_tiles;

  StageMemory text_encoding;
  StageMemory vae_encoding;
  std::vector<StageMemory> steps;  // by expert
  StageMemory decoding;
  uint64_t peak = 0;       // of the largest stage
  uint64_t host_peak = 0;  // of the stage that adds most to the host
};

// `components` are the text encoder, the experts, and the autoencoder. Where the limits know no
// device memory, everything is resident.
//
// Of all choices that fit, the one that moves the fewest bytes in a job while nothing computes:
// streamed ones hide behind a long video's forwards, and not behind a short one's. Whole frames are
// decoded if any choice allows it. Nullopt if nothing fits.
std::optional<ResidencyChoice> ChooseResidency(const std::vector<PlannedComponent>& components,
                                               const MemoryJob& job, const PlanLimits& limits);

// The largest stage of the most frugal choice, for messages about jobs that do not fit. `of_host`:
// nothing is wrong with the device, and it is the choice and the stage by host memory, among the
// choices that fit the device.
struct LeastDemand {
  StageKind stage = StageKind::kT5Encoding;
  StageMemory memory;
  bool of_host = false;
};
LeastDemand FindLeastDemand(const std::vector<PlannedComponent>& components, const MemoryJob& job,
                            const PlanLimits& limits);

}  // namespace wan
