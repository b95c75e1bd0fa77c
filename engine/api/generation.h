// A caller's request, the plan that is made from it, and its results. This header needs neither
// LibTorch nor protobuf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/decoder.h"
#include "engine/api/eight_bit_weights.h"
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

// A caller's request. A field that is not set takes the model's default.
struct GenerationRequest {
  std::string model;
  std::string prompt;                          // text in UTF-8
  std::optional<std::string> negative_prompt;  // unset or empty: the model's default is used
  std::shared_ptr<const std::string> image;    // a PNG, JPEG or WebP file; null: text to video
  // The colour that shows through transparent parts of the image; unset: white. May be set only
  // together with an image.
  std::optional<Color> background;
  // The video's size in pixels. If there is an image, only width times height matters: the model's
  // rule turns this area and the image's aspect ratio into a size. If `size_is_exact` is true, as
  // in a plan's request, the video has exactly this size; the image is scaled and cropped to it.
  std::optional<int> width;
  std::optional<int> height;
  bool size_is_exact = false;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one value, or two: for low noise, then for high noise
  std::optional<double> shift;
  // The noise level of each step before the shift, at most 1, strictly decreasing and above 0;
  // empty: the solver spaces the levels.
  std::vector<double> sigmas;
  // The first step of the low-noise expert; unset: the noise level decides.
  std::optional<int> boundary_step;
  std::string solver;  // a name from engine/schedulers/flow_solvers.def; empty: the model's default
  std::optional<int64_t> seed;
  // Safetensors files with latents of the video's latent shape (engine/formats/latents_file.h);
  // null: no file. `initial_latents` replaces the noise that `seed` would draw. `latents` are clean
  // latents, as an artifact kLatents has them. With 0 steps the job only decodes `latents`.
  // Otherwise the job begins at the first step whose noise level is at most `strength`, and mixes
  // `latents` with noise of that level.
  std::shared_ptr<const std::string> initial_latents;
  std::shared_ptr<const std::string> latents;
  std::optional<double> strength;  // above 0, at most 1; allowed only with `latents`
  std::vector<OutputKind> outputs;
  std::optional<Quality> quality;             // unset: the engine's setting
  std::optional<VaePrecision> vae_precision;  // unset: the engine's setting
  std::optional<Decoder> decoder;             // unset: full
  std::optional<int> h264_crf;   // rate factor of the MP4 file; unset: the engine's setting
  int preview_interval = 0;      // steps between previews; 0: no previews
  std::vector<LoraScale> loras;  // names of LoRAs that belong to the model; merged in this order
  // Whether one step measures the operators of one transformer block (SpanRecord::block_profile).
  // The video has the same bits either way.
  bool profile = false;
  // Whether the steps measure by how much the blocks' contribution changes from step to step
  // (SpanPart::change_ratio), for step_ratios.json. If set, forwards with and without the prompt
  // run one after the other.
  bool calibrate = false;
  // Whether the video can be watched while its frames are decoded
  // (GenerationObserver::OnVideoPart). The files have the same bytes either way. Allowed only if
  // kMp4 is among the outputs.
  bool progressive = false;
  // GenerationPlan::batched_guidance of an earlier attempt, which this one continues; unset: the
  // planner decides. A batch that does not fit the memory is not planned all the same.
  std::optional<bool> batched_guidance;
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
  double timestep = 0;  // timestep of the step, from 0 to 1000
  ExpertRole expert = ExpertRole::kOnly;
  double guidance_scale = 0;
  // Whether the step computes no transformer blocks and adds instead what they added to the
  // residual stream in the last step that computed them. Never true for the first step of an
  // expert.
  bool reuses_blocks = false;
};

// The methods by which a denoising step or the decoding may compute. Each method takes a different
// time per operation.
enum class StageMethod {
  kExact,
  kEightBits,    // GenerationPlan::eight_bits
  kReuse,        // StepPlan::reuses_blocks
  kTinyDecoder,  // Decoder::kTiny
};

// One stage of a job, with the work and memory that it needs.
struct StagePlan {
  Stage stage;  // the stage that its span will have
  // Floating-point operations; a multiplication with an addition counts as two. Absent if they do
  // not determine how long the stage takes.
  std::optional<double> flops;
  // Upper bound of the stage's device memory, in bytes. Both members are 0 if memory is not planned
  // or the stage uses no device memory.
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // bytes of activations and of workspaces of libraries
  uint64_t workspace_bytes = 0;   // the part of activation_bytes that libraries keep
  // Bytes of host memory that the job adds in this stage: weights that it parks, frames on their
  // way to files, activations of components on the CPU. The number is 0 if memory is not planned.
  uint64_t host_bytes = 0;
  // The method of the stages kStepInference and kVaeDecoding; all other stages have kExact.
  StageMethod method = StageMethod::kExact;
  // The number of transformer blocks that compute without 8 bits; 0 for other methods than
  // kEightBits.
  int exact_blocks = 0;
};

// The tokens of a request's texts (engine/pipeline/prepared_request.h).
struct PreparedRequest;

// The fewest decoded frames that may wait for their encoder. Two chunks of four frames are enough
// for decoding and encoding to overlap.
inline constexpr int kLeastQueuedFrames = 8;

// Everything that is decided about a job before its work starts. MakePlan (engine/planning/plan.h)
// computes it from request, model and device alone. Validation, admission, estimates of remaining
// time and the pipeline read the plan; no other code computes any of this.
struct GenerationPlan {
  // The request with every optional field set, the seed drawn and the size exact. If this request
  // is planned again, the result is the same plan.
  GenerationRequest request;
  VideoShape shape;                   // the size of the finished video
  std::vector<int64_t> latent_shape;  // dimensions [C, T, H, W]
  int64_t tokens = 0;                 // transformer tokens of one forward
  // Whether a step's forwards with and without the prompt run as one batch of two. A batch is
  // faster for small videos, whose single forward does not fill the device.
  bool batched_guidance = false;
  // Whether the transformers' products and self-attention take inputs of 8 bits.
  bool eight_bits = false;
  // The indices of the blocks that take no inputs of 8 bits (EngineOptions::quality_exact_blocks),
  // in rising order; empty without eight_bits.
  std::vector<int> exact_blocks;
  // The components that keep their weights in 8 bits.
  EightBitWeights eight_bit_weights;
  // Whether any step runs a forward without the prompt. Steps with a guidance scale of exactly 1
  // run no such forward. So `guided` is false if all scales are 1, and for few-step checkpoints,
  // whose weights have learnt the guidance.
  bool guided = true;
  std::vector<StepPlan> steps;  // empty if the job only decodes latents
  // The number of steps that the job skips at the beginning of the schedule, because it begins with
  // the request's latents. `steps` starts after them.
  int first_step = 0;
  // The first step that EngineOptions::guidance_until leaves without guidance; nullopt if all steps
  // keep their guidance.
  std::optional<int> unguided_from;
  // The noise level of each step's input, strictly decreasing. One more entry, 0, ends the list.
  // Empty if there are no steps.
  std::vector<float> sigmas;
  std::vector<StagePlan> stages;  // in the order in which they start
  // Where each component's weights are during the job; no entry is kAuto.
  std::vector<ComponentResidency> residency;
  // Whether the next expert's weights are copied to the device while the previous expert computes
  // its last step.
  bool prefetch_experts = false;
  // Whether the transformers record and replay forwards, which saves the launches of small videos.
  // The result has the same bits.
  bool record_forwards = false;
  TileGrid decode_tiles;
  // The maximum number of decoded frames that may wait for their encoder; then decoding waits.
  int queued_frames = kLeastQueuedFrames;
  // Floating-point operations of one forward that computes one text.
  double forward_flops = 0;
  // Floating-point operations of one forward that reuses blocks, for one text.
  double reuse_flops = 0;
  // The number of transformer blocks in a forward, and the work of one block for one text.
  int blocks = 0;
  std::vector<OperatorWork> block_operators;
  // The bytes of device memory that the job may use; 0: no limit.
  uint64_t device_memory_bytes = 0;
  // The bytes of device memory that the largest stage needs, including this model's weights; 0 if
  // memory is not planned.
  uint64_t peak_device_bytes = 0;
  // The maximum number of bytes of host memory that the job adds in any stage; 0 if memory is not
  // planned.
  uint64_t peak_host_bytes = 0;
  bool image_to_video = false;
  // The tokens of the texts. Planning makes them, and the job uses them. Only the job decodes the
  // image. A queued job keeps no plan: each attempt makes a new plan. The pointer is null in a plan
  // that no engine made.
  std::shared_ptr<const PreparedRequest> prepared;

  // Returns whether forwards keep the sum that their blocks added: for a later step that reuses
  // blocks, or for the ratios of a job that calibrates.
  bool keeps_blocks() const {
    return request.calibrate || std::any_of(steps.begin(), steps.end(), [](const StepPlan& step) {
             return step.reuses_blocks;
           });
  }

  // Returns whether the job computes steps, rather than only decode the request's latents.
  bool denoises() const { return !steps.empty(); }

  // Returns whether frames are decoded. A request whose only output is latents does not need
  // decoding.
  bool decodes() const {
    return std::any_of(request.outputs.begin(), request.outputs.end(),
                       [](OutputKind kind) { return kind != OutputKind::kLatents; });
  }
};

// The kind of an artifact, and the path of the file that will hold it.
struct OutputFile {
  OutputKind kind = OutputKind::kMp4;
  std::string path;
};

// Frames of the video as the steps so far predict them.
struct Preview {
  int step = 0;  // number of steps that were finished then
  // JPEG files of the first, the middle and the last frame; fewer if the video has fewer.
  std::vector<std::string> jpegs;
};

// A part of the fragmented MP4 that shows a video while it is made. All parts in their order are
// one stream that players and MediaSource take. The stream has the encoded frames of the job's MP4
// file.
struct VideoPart {
  // The codec in the form of RFC 6381, for example "avc1.64001f". Only the first part of a stream
  // has a codec; that part holds the stream's header and no frames.
  std::string codec;
  std::string bytes;
};

}  // namespace wan
