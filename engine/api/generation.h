// A request, the plan made from it, and the results. Free of LibTorch and protobuf.
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
#include "engine/api/quality.h"
#include "engine/api/residency.h"
#include "engine/api/stage.h"
#include "engine/api/vae_precision.h"

namespace wan {

enum class OutputKind { kMp4, kLosslessMkv, kLatents };

// A caller's request. Unset fields take the model's default.
struct GenerationRequest {
  std::string model;
  std::string prompt;                          // UTF-8
  std::optional<std::string> negative_prompt;  // unset or empty: the model's default
  std::shared_ptr<const std::string> image;    // a PNG, JPEG or WebP file; null: text to video
  // Colour behind transparent parts of the image; unset: white. Only with an image.
  std::optional<Color> background;
  // Size in pixels. With an image, only width times height matters: the model's rule and the
  // image's aspect ratio turn that area into a size. If `size_is_exact` is true, as in a plan's
  // request, the video has exactly this size, and the image is scaled and cropped to it.
  std::optional<int> width;
  std::optional<int> height;
  bool size_is_exact = false;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one value, or two (low noise, high noise)
  std::optional<double> shift;
  std::string solver;  // name in engine/schedulers/flow_solvers.def; empty: the model's default
  std::optional<int64_t> seed;
  std::vector<OutputKind> outputs;
  std::optional<Quality> quality;             // unset: the engine's setting
  std::optional<VaePrecision> vae_precision;  // unset: the engine's setting
  std::optional<int> h264_crf;   // rate factor of the MP4 file; unset: the engine's setting
  int preview_interval = 0;      // steps between previews; 0: no previews
  std::vector<LoraScale> loras;  // registered with the model; merged in this order
  // Whether one step times the operators of one transformer block (SpanRecord::block_profile). The
  // results stay bit for bit the same.
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
  // Whether the step computes no transformer blocks: it adds what they added to the residual stream
  // in the last step that computed them. Never true for the first step of an expert.
  bool reuses_blocks = false;
};

// One stage of a job, with its work and memory.
struct StagePlan {
  Stage stage;  // stage of the corresponding span
  // Floating-point operations, with a multiply-add counted as two. Absent if the stage's time does
  // not depend on them.
  std::optional<double> flops;
  // Upper bound of the stage's device memory, in bytes. Both members are 0 if memory is not planned
  // or the stage uses no device memory.
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // activations and workspaces
  uint64_t workspace_bytes = 0;   // part of activation_bytes that libraries keep
  // Host memory that the job adds in this stage: weights that it parks, frames on their way to
  // files, activations of components on the CPU. 0 if memory is not planned.
  uint64_t host_bytes = 0;
};

// The tokens of the texts (engine/pipeline/prepared_request.h).
struct PreparedRequest;

// Fewest decoded frames that may wait for their encoder: two chunks of four, enough for decoding
// and encoding to overlap.
inline constexpr int kLeastQueuedFrames = 8;

// All that is decided before the work starts: a pure function of request, model and device, made by
// MakePlan (engine/planning/plan.h). Validation, admission, estimates of remaining time and the
// pipeline read it; no other code computes any of it.
struct GenerationPlan {
  // The request with all optional fields set, the seed drawn and the size exact. Planning it again
  // gives the same plan.
  GenerationRequest request;
  VideoShape shape;                   // the size of the finished video
  std::vector<int64_t> latent_shape;  // [C, T, H, W]
  int64_t tokens = 0;                 // transformer tokens per forward
  // Whether the forwards with and without the prompt run as one batch of two. That pays off for
  // small videos, where one forward does not fill the device.
  bool batched_guidance = false;
  // Whether the transformers' products and self-attention take inputs of 8 bits.
  bool eight_bits = false;
  // Whether any step runs a forward without the prompt; steps with a guidance scale of exactly 1 do
  // not. False for few-step checkpoints, whose weights have learnt the guidance, and if all scales
  // are 1.
  bool guided = true;
  std::vector<StepPlan> steps;
  // Noise level of each step's input, strictly decreasing, and a last entry of 0.
  std::vector<float> sigmas;
  std::vector<StagePlan> stages;  // in the order of their starts
  // Where each component's weights are during the job; never kAuto.
  std::vector<ComponentResidency> residency;
  // Whether the next expert's weights are copied to the device during the previous expert's last
  // step.
  bool prefetch_experts = false;
  // Whether the transformers record and replay forwards, which saves launches for small videos. The
  // result has the same bits.
  bool record_forwards = false;
  TileGrid decode_tiles;
  // Most decoded frames that may wait for their encoder before decoding waits.
  int queued_frames = kLeastQueuedFrames;
  // Floating-point operations of one forward with one text.
  double forward_flops = 0;
  // Transformer blocks per forward, and the work of one of them with one text.
  int blocks = 0;
  std::vector<OperatorWork> block_operators;
  // Device memory, in bytes, that the job may use; 0: no limit.
  uint64_t device_memory_bytes = 0;
  // Device memory, in bytes, of the largest stage, including this model's weights; 0 if memory is
  // not planned.
  uint64_t peak_device_bytes = 0;
  // Most host memory that the job adds in any stage; 0 if memory is not planned.
  uint64_t peak_host_bytes = 0;
  bool image_to_video = false;
  // The texts' tokens, which planning makes and the job uses. The image is decoded only by the job.
  // A queued job keeps no plan: each attempt makes its own. Null in a plan that no engine made.
  std::shared_ptr<const PreparedRequest> prepared;

  // Returns whether frames are decoded, which a request for latents alone does not need.
  bool decodes() const {
    return std::any_of(request.outputs.begin(), request.outputs.end(),
                       [](OutputKind kind) { return kind != OutputKind::kLatents; });
  }
};

// An artifact's kind and the file that it is written to.
struct OutputFile {
  OutputKind kind = OutputKind::kMp4;
  std::string path;
};

// A JPEG file with the first frame of the current estimate of the video.
struct Preview {
  int step = 0;  // number of finished steps
  std::string jpeg;
};

}  // namespace wan
