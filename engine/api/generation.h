// A request, the plan that is made from it, and the results. This header is free of LibTorch and of
// protobuf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/input_image.h"
#include "engine/api/lora.h"
#include "engine/api/model_parts.h"
#include "engine/api/operator_work.h"
#include "engine/api/residency.h"
#include "engine/api/stage.h"
#include "engine/api/vae_precision.h"

namespace wan {

enum class OutputKind { kMp4, kLosslessMkv, kLatents };

// A caller's request. A field that is not set takes the model's default.
struct GenerationRequest {
  std::string model;
  std::string prompt;                          // UTF-8
  std::optional<std::string> negative_prompt;  // unset or empty: the model's default
  std::shared_ptr<const std::string>
      image;  // bytes of a PNG, JPEG or WebP file; null: text to video
  // Colour for the transparent parts of the image; unset: white. Only with an image.
  std::optional<Color> background;
  // The size in pixels. With an image, width times height is only an area: the model's rule and the
  // image's aspect ratio turn it into a size. Where `size_is_exact` is true, as in the request of a
  // plan, the video has exactly this size, and the image is scaled and cut to it.
  std::optional<int> width;
  std::optional<int> height;
  bool size_is_exact = false;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one value, or two: low noise, then high noise
  std::optional<double> shift;
  std::string solver;  // of engine/schedulers/flow_solvers.def; empty: the model's default
  std::optional<int64_t> seed;
  std::vector<OutputKind> outputs;
  std::optional<VaePrecision> vae_precision;  // unset: the engine's
  std::optional<int> h264_crf;                // of the MP4 file; unset: the engine's
  int preview_interval = 0;                   // steps between previews; 0: no previews
  std::vector<LoraScale> loras;               // registered with the model; merged in this order
  // Whether one step measures the operators of one transformer block (SpanRecord::block_profile).
  // It changes no bit of the results.
  bool profile = false;
};

// The size of a video in pixels and frames.
struct VideoShape {
  int width = 0;
  int height = 0;
  int num_frames = 0;

  // clang-tidy mistakes the 0 in comparisons with the result for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const VideoShape&, const VideoShape&) = default;
};

// One planned denoising step.
struct StepPlan {
  double timestep = 0;  // 0 to 1000
  ExpertRole expert = ExpertRole::kOnly;
  double guidance_scale = 0;
};

// One stage of the job, with its work and its memory.
struct StagePlan {
  Stage stage;  // of its span
  // Floating-point operations; a multiplication with an addition counts as two. Absent for a stage
  // whose time does not depend on them.
  std::optional<double> flops;
  // The most device memory that the stage holds: an upper bound, in bytes. Both are 0 where memory
  // is not planned, and for a stage that uses no device memory.
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // activations and workspaces
  uint64_t workspace_bytes = 0;   // the part of it that libraries keep for themselves
  // The host memory that the job adds in this stage: weights that it has parked there, frames on
  // their way to the files, activations of what computes on the CPU. 0 where it is not planned.
  uint64_t host_bytes = 0;
};

// The texts' tokens (engine/pipeline/prepared_request.h).
struct PreparedRequest;

// The least number of decoded frames that may wait for their encoder: two chunks of four, enough
// for decoding and encoding to overlap.
inline constexpr int kLeastQueuedFrames = 8;

// Everything that is decided before the work starts. It is a pure function of request, model and
// device; MakePlan (engine/planning/plan.h) makes it for Engine::Plan. Validation, admission, the
// estimate of the time left and the pipeline read it; no other code computes any of it again.
struct GenerationPlan {
  // The request with every optional field set, the seed drawn and the size exact. Planning it once
  // more gives the same plan.
  GenerationRequest request;
  VideoShape shape;                   // the size of the finished video
  std::vector<int64_t> latent_shape;  // [C, T, H, W]
  int64_t tokens = 0;                 // the transformer's tokens in one forward pass
  // Whether the conditional and the unconditional forward pass run as one batch of two. This pays
  // for small videos, where one pass does not fill the device.
  bool batched_guidance = false;
  // Whether any step runs an unconditional pass besides the conditional one; steps with a guidance
  // scale of exactly 1 do not. False for few-step checkpoints, whose weights have learnt the
  // guidance, and if every scale is 1: then every step runs one pass, with the prompt.
  bool guided = true;
  std::vector<StepPlan> steps;
  // The noise level of each step's input: strictly decreasing; one more entry than steps, the last
  // of which is 0.
  std::vector<float> sigmas;
  std::vector<StagePlan> stages;  // in the order in which they start
  // Where every component's weights live while the job runs; never kAuto.
  std::vector<ComponentResidency> residency;
  // Whether the next expert's weights are copied to the device while the expert before it computes
  // its last step.
  bool prefetch_experts = false;
  // Whether the transformers record forwards and replay them: it saves launches where the kernels
  // of a small video take less time than these, and the result has the same bits.
  bool record_forwards = false;
  TileGrid decode_tiles;
  // Most decoded frames that may wait for their encoder before decoding waits.
  int queued_frames = kLeastQueuedFrames;
  // Floating-point operations of one forward with one text.
  double forward_flops = 0;
  // The number of transformer blocks in a forward, and the work of one of them in a forward with
  // one text.
  int blocks = 0;
  std::vector<OperatorWork> block_operators;
  // The device memory, in bytes, that the job may use; 0 where it is not limited.
  uint64_t device_memory_bytes = 0;
  // The device memory, in bytes, of the largest stage, with the weights of this model; 0 where
  // memory is not planned.
  uint64_t peak_device_bytes = 0;
  // The most host memory that the job adds in any stage; 0 where memory is not planned.
  uint64_t peak_host_bytes = 0;
  bool image_to_video = false;
  // The engine's tokens of the texts, read for the plan and used again to carry it out. The image
  // was only measured: the job decodes it when it needs its pixels. A queued job keeps no plan:
  // each attempt makes its own. Null in a plan that was not made by an engine.
  std::shared_ptr<const PreparedRequest> prepared;

  // Returns whether frames are decoded. A request that asks only for latents needs none.
  bool decodes() const {
    return std::any_of(request.outputs.begin(), request.outputs.end(),
                       [](OutputKind kind) { return kind != OutputKind::kLatents; });
  }
};

// Names the file that an artifact is written to.
struct OutputFile {
  OutputKind kind = OutputKind::kMp4;
  std::string path;
};

// A JPEG file that shows the first frame of the current estimate of the video.
struct Preview {
  int step = 0;  // the number of finished steps
  std::string jpeg;
};

}  // namespace wan
