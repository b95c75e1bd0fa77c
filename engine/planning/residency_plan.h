// Chooses each component's policy for one job, and computes the memory of every stage. Pure
// functions of model, job and device; sizes are in bytes and come from engine/costs/wan/*_cost.h.
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

// What a job's activations depend on.
struct MemoryJob {
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  int64_t element_bytes = 4;  // bytes per element of transformers and text encoder
  VaeArithmetic vae_arithmetic;
  LatentSize latents;
  int64_t tokens = 0;       // tokens in one forward
  int64_t text_tokens = 0;  // tokens of the longer text
  bool guided = true;
  // Whether a guided step computes both texts in one batch if memory allows.
  bool batches_guidance = false;
  StageKind preprocess = StageKind::kTi2vPreprocess;  // stage that decodes an image
  ImageRole image = ImageRole::kNone;
  uint64_t image_bytes = 0;  // host memory for decoding and fitting the image
  bool previews = false;
  bool decodes = true;  // false: the job ends with latents
  // The video's size, for frames that wait in host memory for their encoder.
  int64_t frame_pixels = 0;
  int frame_height = 0;
  int64_t frames = 0;
  int writers = 1;                // number of video files
  std::vector<int> expert_steps;  // steps of each expert
  // Memory for merging the job's LoRAs into each expert; empty: no LoRAs.
  std::vector<uint64_t> expert_merging_bytes;
  // Whether the transformers may keep recorded forwards on the device.
  bool records_forwards = false;
  bool eight_bits = false;  // GenerationPlan::eight_bits
  // The number of devices that compute a step together. The plan covers the first device; the
  // others need no more memory. With an even number, each half computes one text of a batch.
  int64_t ranks = 1;
};

// Pinned host memory for reading weights to a GPU: the buffers of a StagedUpload with 16 threads.
inline constexpr uint64_t kReadingBuffersBytes = uint64_t{256} << 20;

struct StageMemory {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t host = 0;         // host memory that the job adds
  uint64_t host_pinned = 0;  // of which: pinned, for parked weights

  uint64_t total() const { return weights + activations; }
};

struct ResidencyChoice {
  std::vector<ResidencyPolicy> policies;  // one per component, never kAuto
  bool batched_guidance = false;
  // Whether the next expert's weights are copied while the previous expert computes.
  bool prefetch_experts = false;
  bool record_forwards = false;
  TileGrid decode_tiles;
  int queued_frames = kLeastQueuedFrames;

  StageMemory preprocess;
  StageMemory text_encoding;
  StageMemory vae_encoding;
  std::vector<StageMemory> steps;  // steps of each expert
  StageMemory decoding;
  uint64_t peak = 0;       // device memory of the largest stage
  uint64_t host_peak = 0;  // host memory of the stage that adds most
};

// `components` are the text encoder, the experts and the autoencoder, in this order. Without a
// limit of device memory all weights are resident.
//
// Returns the fitting choice that copies the fewest bytes while nothing computes: a long video's
// forwards hide streaming, a short one's do not. It decodes whole frames if any choice allows that.
// Returns nullopt if no choice fits.
std::optional<ResidencyChoice> ChooseResidency(const std::vector<PlannedComponent>& components,
                                               const MemoryJob& job, const PlanLimits& limits);

// The largest stage of the most frugal choice, for messages about jobs that do not fit the device.
// With `of_host` the job fits the device but not the host, and the choice is the one with the least
// host memory.
struct LeastDemand {
  StageKind stage = StageKind::kT5Encoding;
  StageMemory memory;
  bool of_host = false;
};
LeastDemand FindLeastDemand(const std::vector<PlannedComponent>& components, const MemoryJob& job,
                            const PlanLimits& limits);

}  // namespace wan
