// Chooses each component's policy for one job, and computes the memory of every stage. All
// functions are pure; sizes are in bytes and come from engine/costs/wan/*_cost.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/eight_bit_weights.h"
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

// The properties of a job that decide how much memory its activations take.
struct MemoryJob {
  TransformerConfig transformer;
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  int64_t element_bytes = 4;  // size of an element of transformers and text encoder
  VaeArithmetic vae_arithmetic;
  LatentSize latents;
  int64_t tokens = 0;       // tokens of one forward
  int64_t text_tokens = 0;  // number of tokens of the longer text
  bool guided = true;
  // Whether a guided step computes both texts in one batch, if memory allows.
  bool batches_guidance = false;
  StageKind preprocess = StageKind::kTi2vPreprocess;  // the stage in which the image is decoded
  ImageRole image = ImageRole::kNone;
  uint64_t image_bytes = 0;  // host memory that decoding and fitting the image takes
  // Host memory of the request's files of latents, which the job keeps to its end, and the memory
  // that reading them adds. The job reads them before the first step or, if it only decodes, while
  // it is prepared.
  uint64_t latents_bytes = 0;
  uint64_t latents_reading_bytes = 0;
  bool previews = false;
  bool decodes = true;  // false: the job ends with latents and decodes no frames
  // The video's size, which decides how much host memory frames take while they wait for their
  // encoder.
  int64_t frame_pixels = 0;
  int frame_height = 0;
  int64_t frames = 0;
  int writers = 1;  // number of video files that are written
  // The number of steps that each expert computes. If all are 0, the job only decodes: it encodes
  // no text.
  std::vector<int> expert_steps;
  // Device memory that merging the job's LoRAs into each expert takes; empty: no LoRAs.
  std::vector<uint64_t> expert_merging_bytes;
  // Whether the texts keep the sum that the blocks added (GenerationPlan::keeps_blocks).
  bool keeps_blocks = false;
  // Whether the transformers may keep recorded forwards on the device.
  bool records_forwards = false;
  bool eight_bits = false;  // GenerationPlan::eight_bits
  EightBitWeights eight_bit_weights;
  // The number of devices that compute each step together. The plan covers the first device; no
  // other device needs more memory. If the number is even, each half of the devices computes one of
  // a step's two texts.
  int64_t ranks = 1;
};

// Pinned host memory that reading weights to a GPU takes: the buffers of a StagedUpload with 16
// threads.
inline constexpr uint64_t kReadingBuffersBytes = uint64_t{256} << 20;

struct StageMemory {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t host = 0;         // bytes of host memory that the job adds in this stage
  uint64_t host_pinned = 0;  // the part of `host` that is pinned, for parked weights

  uint64_t total() const { return weights + activations; }
};

struct ResidencyChoice {
  std::vector<ResidencyPolicy> policies;  // one policy per component, none of them kAuto
  bool batched_guidance = false;
  // Whether the next expert's weights are copied while the previous expert still computes.
  bool prefetch_experts = false;
  bool record_forwards = false;
  TileGrid decode_tiles;
  int queued_frames = kLeastQueuedFrames;

  StageMemory preprocess;
  StageMemory text_encoding;
  StageMemory vae_encoding;
  std::vector<StageMemory> steps;  // memory of a step, for each expert
  StageMemory decoding;
  uint64_t peak = 0;       // device memory of the stage that needs most
  uint64_t host_peak = 0;  // host memory of the stage that adds most host memory
};

// `components` must be the text encoder, the experts and the autoencoder, in this order. If there
// is no limit of device memory, all weights are resident.
//
// Returns the choice that fits and copies the fewest bytes while nothing computes. (Streaming hides
// behind a long video's forwards, but not behind a short one's.) Components that do no work in the
// job leave the device first. Between equal choices, the one that moves the fewest bytes wins. The
// choice decodes whole frames if any fitting choice can. Returns nullopt if no choice fits.
std::optional<ResidencyChoice> ChooseResidency(const std::vector<PlannedComponent>& components,
                                               const MemoryJob& job, const PlanLimits& limits);

// For messages about jobs that do not fit: the largest stage of the choice that needs the least
// memory. If `of_host` is true, the job fits the device but not the host, and the choice needs the
// least host memory of all choices.
struct LeastDemand {
  StageKind stage = StageKind::kT5Encoding;
  StageMemory memory;
  bool of_host = false;
};
LeastDemand FindLeastDemand(const std::vector<PlannedComponent>& components, const MemoryJob& job,
                            const PlanLimits& limits);

}  // namespace wan
