// A request, the plan made from it, and what comes out. No LibTorch, no protobuf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/lora.h"
#include "engine/api/residency.h"

namespace wan {

enum class OutputKind { kMp4, kLosslessMkv, kLatents };

// What a caller asks for; unset fields take the model's defaults.
struct GenerationRequest {
  std::string model;
  std::string prompt;                          // UTF-8
  std::optional<std::string> negative_prompt;  // unset or empty: the model's default
  std::shared_ptr<const std::string> image;    // bytes of a PNG or JPEG file; null: text to video
  // Pixels. With an image they are an area, from which the model's rule and the image's ratio make
  // the size; unless `size_is_exact`, as in the request of a plan, where that has been done.
  std::optional<int> width;
  std::optional<int> height;
  bool size_is_exact = false;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one, or (low noise, high noise)
  std::optional<double> shift;
  std::string solver;  // "unipc", "dpm++", "euler"; empty: the model's default
  std::optional<int64_t> seed;
  std::vector<OutputKind> outputs;
  int preview_interval = 0;      // steps between previews; 0: none
  std::vector<LoraScale> loras;  // of the model's own; merged in this order
};

// Size of a video in pixels and frames.
struct VideoShape {
  int width = 0;
  int height = 0;
  int num_frames = 0;

  friend auto operator<=>(const VideoShape&, const VideoShape&) = default;
};

// One denoising step as planned.
struct StepPlan {
  double timestep = 0;  // 0 to 1000
  std::string expert;   // "only", "high", "low"
  double guidance_scale = 0;
};

// One stage of the job with the work it holds.
struct StagePlan {
  std::string stage;  // name of its span
  // Floating-point operations, multiply and add counted as two; absent where they are not what
  // takes time.
  std::optional<double> flops;
  // What it holds of the device's memory at most: an estimate that is not exceeded. 0 where memory
  // is not planned, and for stages that use none of the device.
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // and workspace
};

// Everything that is decided before the work starts: a pure function of request, model and device,
// made by MakePlan (engine/planning/plan.h) behind Engine::Plan. Validation, admission, time left
// and the pipeline read it; nothing computes these a second time.
struct GenerationPlan {
  GenerationRequest
      request;  // resolved: every optional set, seed drawn, the size exact; plans the same again
  VideoShape shape;                   // of the video that comes out
  std::vector<int64_t> latent_shape;  // [C, T, H, W]
  int64_t tokens = 0;                 // transformer tokens of one forward
  // Conditional and unconditional forward in one batch of two: for small videos, where one forward
  // does not fill the device.
  bool batched_guidance = false;
  // False for few-step checkpoints, which have learnt the guidance: one forward a step, with the
  // prompt alone.
  bool guided = true;
  std::vector<StepPlan> steps;
  // Noise levels: that of each step's input, falling, and 0 behind the last.
  std::vector<float> sigmas;
  std::vector<StagePlan> stages;  // in the order of their start
  // Where every component's weights are while the job runs; none of them kAuto.
  std::vector<ComponentResidency> residency;
  // The weights of the expert that takes over come while the one before computes its last step.
  bool prefetch_experts = false;
  TileGrid decode_tiles;
  // Of the largest stage, weights of this model included; 0 where memory is not planned.
  uint64_t peak_device_bytes = 0;
  bool image_to_video = false;

  // False where the request asks for latents alone: then no frame is made.
  bool decodes() const {
    return std::any_of(request.outputs.begin(), request.outputs.end(),
                       [](OutputKind kind) { return kind != OutputKind::kLatents; });
  }
};

// Where an artifact is to be written.
struct OutputFile {
  OutputKind kind = OutputKind::kMp4;
  std::string path;
};

// A JPEG of the first frame of the current estimate.
struct Preview {
  int step = 0;  // steps done
  std::string jpeg;
};

}  // namespace wan
