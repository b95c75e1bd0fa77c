// Chooses the policy of each component for one job, and computes the memory that every stage then
// holds. Pure functions of the model, the job and the device; the sizes come from the components'
// descriptions (engine/costs/wan/*_cost.h). Sizes are in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/generation.h"
#include "engine/api/residency.h"
#include "engine/api/stage.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/families/model_family.h"
#include "engine/planning/plan_limits.h"
#include "engine/planning/planned_component.h"
#include "engine/planning/tile_geometry.h"

namespace wan {

// The facts on which a job's activations depend.
struct MemoryJob {
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  int64_t element_bytes = 4;  // size of the compute dtype of transformers and text encoder
  VaeArithmetic vae_arithmetic;
  LatentSize latents;
  int64_t tokens = 0;       // in one forward
  int64_t text_tokens = 0;  // in the longer text
  bool guided = true;
  // Whether a guided step computes both texts in one batch, if memory allows it.
  bool batches_guidance = false;
  StageKind preprocess = StageKind::kTi2vPreprocess;  // the stage in which an image is decoded
  ImageRole image = ImageRole::kNone;
  uint64_t image_bytes = 0;  // host memory while the image is decoded and fitted to the video
  bool previews = false;
  bool decodes = true;  // false: the job ends with latents, and no frame is decoded
  // The size of the video, for the frames that wait in host memory for their files.
  int64_t frame_pixels = 0;
  int frame_height = 0;
  int64_t frames = 0;
  int writers = 1;                // number of files into which frames are encoded
  std::vector<int> expert_steps;  // number of steps of each expert
  // The memory that merging the job's LoRAs into each expert takes; empty: there are none.
  std::vector<uint64_t> expert_merging_bytes;
  // Whether the transformers may keep recorded forwards on the device.
  bool records_forwards = false;
  // The number of devices that compute a step together. The plan covers the first device's memory;
  // the others hold a part of the same. An even number divides a batch: each half computes one
  // text.
  int64_t ranks = 1;
};

// The locked host memory that reading weights to a GPU takes: all buffers of a StagedUpload with 16
// threads.
inline constexpr uint64_t kReadingBuffersBytes = uint64_t{256} << 20;

struct StageMemory {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t host = 0;         // host memory that the job adds
  uint64_t host_pinned = 0;  // of which: pinned, for parked weights

  uint64_t total() const { return weights + activations; }
};

struct ResidencyChoice {
  std::vector<ResidencyPolicy> policies;  // one for each component, never kAuto
  bool batched_guidance = false;
  // Whether the next expert's weights are copied while the one before it still computes.
  bool prefetch_experts = false;
  bool record_forwards = false;
  TileGrid decode_tiles;
  int queued_frames = kLeastQueuedFrames;

  StageMemory preprocess;
  StageMemory text_encoding;
  StageMemory vae_encoding;
  std::vector<StageMemory> steps;  // one for each expert
  StageMemory decoding;
  uint64_t peak = 0;       // of the largest stage
  uint64_t host_peak = 0;  // of the stage that adds most to the host
};

// `components` are the text encoder, the experts, and the autoencoder, in this order. If the limits
// have no device memory, all weights are resident.
//
// Returns the fitting choice that copies the fewest bytes while nothing computes: the forwards of a
// long video hide streaming, those of a short one do not. Decodes whole frames if any choice allows
// it. Returns nullopt if no choice fits.
std::optional<ResidencyChoice> ChooseResidency(const std::vector<PlannedComponent>& components,
                                               const MemoryJob& job, const PlanLimits& limits);

// The largest stage of the most frugal choice, for messages about jobs that do not fit. With
// `of_host`, for jobs that fit the device, it is the choice with the least host memory among those
// that fit the device.
struct LeastDemand {
  StageKind stage = StageKind::kT5Encoding;
  StageMemory memory;
  bool of_host = false;
};
LeastDemand FindLeastDemand(const std::vector<PlannedComponent>& components, const MemoryJob& job,
                            const PlanLimits& limits);

}  // namespace wan
