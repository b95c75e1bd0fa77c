#include "engine/planning/plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/h264.h"
#include "engine/api/request_defaults.h"
#include "engine/api/request_limits.h"
#include "engine/api/stage.h"
#include "engine/costs/library_workspace.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/costs/wan/umt5_cost.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/planning/latents_plan.h"
#include "engine/planning/lora_schedule.h"
#include "engine/planning/plan_memory.h"
#include "engine/planning/sigma_rules.h"
#include "engine/planning/size_rules.h"
#include "engine/planning/step_reuse.h"
#include "engine/planning/tile_geometry.h"
#include "engine/schedulers/flow_schedule.h"

namespace wan {
namespace {

// Collects the violations of one request. Each violation names the field and its value, and says
// what would be right.
class Violations {
 public:
  explicit Violations(std::vector<FieldViolation> found) : list_(std::move(found)) {}

  void Add(std::string field, std::string description) {
    list_.push_back({std::move(field), std::move(description)});
  }

  void Add(std::vector<FieldViolation> more) {
    for (FieldViolation& violation : more) list_.push_back(std::move(violation));
  }

  void CheckRange(const std::string& field, double value, double low, double high) {
    // Written this way, the condition also rejects NaN.
    if (!(value >= low && value <= high)) {
      Add(field, absl::StrCat("is ", value, "; must be from ", low, " to ", high));
    }
  }

  const std::vector<FieldViolation>& list() const { return list_; }

 private:
  std::vector<FieldViolation> list_;
};

void CheckTexts(const InspectedRequest& inspected, int64_t limit, Violations& violations) {
  const auto check = [&](const char* field, const std::optional<int64_t>& tokens) {
    if (!tokens.has_value()) return;
    if (*tokens <= 1) violations.Add(field, "is empty; must have some text");
    if (*tokens > limit) {
      violations.Add(field, absl::StrCat("has ", *tokens,
                                         " tokens with the end mark; must have at most ", limit));
    }
  };
  check("prompt", inspected.prompt_tokens);
  check("negative_prompt", inspected.negative_prompt_tokens);
}

// Returns the sentence that says which aspect ratio an image may have; `cut` comes from
// CutForVideo.
std::string TooLongText(ImageSize image, ImageSize cut, const GenerationRequest& request) {
  const auto [shorter, longer] = std::minmax(cut.width, cut.height);
  const std::string size = absl::StrCat(*request.width, "x", *request.height);
  return absl::StrCat("is ", image.width, "x", image.height, "; in a video with the area of ", size,
                      " the longer side must be at most ",
                      std::floor(10.0 * longer / std::max(shorter, 1)) / 10,
                      " times the shorter, for example ", cut.width, "x", cut.height,
                      "; with exact_size it is cut to the shape of ", size);
}

// Returns the video's size. If something forbids it, adds a violation and returns nullopt.
std::optional<VideoShape> DecideShape(const GenerationRequest& request, const PlannedModel& model,
                                      const InspectedRequest& inspected, Violations& violations) {
  const size_t before = violations.list().size();
  const int stride = model.SpatialStride();
  const int time_stride = static_cast<int>(model.vae.stride_temporal);
  // A size that only sets an area for an image need not be a multiple of the stride.
  const bool on_grid = request.image == nullptr || request.size_is_exact;
  const auto check_side = [&](const char* field, int value) {
    const ValueGrid sides{stride, kMaxSide, on_grid ? stride : 1};
    if (sides.Contains(value)) return;
    violations.Add(
        field, absl::StrCat("is ", value, "; must be ",
                            on_grid ? absl::StrCat("a multiple of ", stride, " ") : "", "from ",
                            stride, " to ", kMaxSide, ", for example ", NearestIn(sides, value)));
  };
  check_side("width", *request.width);
  check_side("height", *request.height);
  const int max_frames = (kMaxLatentFrames - 1) * time_stride + 1;
  const int frames = *request.num_frames;
  const ValueGrid lengths{1, max_frames, time_stride};
  if (!lengths.Contains(frames)) {
    violations.Add("num_frames",
                   absl::StrCat("is ", frames, "; must be ", time_stride, "n+1 from 1 to ",
                                max_frames, ", for example ", NearestIn(lengths, frames)));
  }
  if (violations.list().size() != before) return std::nullopt;

  VideoShape shape{*request.width, *request.height, frames};
  if (inspected.image.has_value() && !request.size_is_exact) {
    const ImageSize image = *inspected.image;
    const int64_t area = int64_t{*request.width} * *request.height;
    const ImageSize cut = CutForVideo(model.family->image, image, area, stride, kMaxSide);
    if (cut != image) {
      violations.Add("image", TooLongText(image, cut, request));
      return std::nullopt;
    }
    const ImageSize size = SizeOfImageVideo(model.family->image, image, area, stride);
    shape.width = size.width;
    shape.height = size.height;
  }
  return shape;
}

void CheckSampling(const GenerationRequest& request, const ModelFamily& family,
                   Violations& violations) {
  violations.CheckRange("fps", *request.fps, 1, kMaxFps);
  violations.CheckRange("h264_crf", *request.h264_crf, kBestH264Crf, kWorstH264Crf);
  if (*request.steps == 0 && request.latents == nullptr) {
    violations.Add("steps", absl::StrCat("is 0; must be from 1 to ", kMaxFlowSteps,
                                         ", or latents must be given, which 0 steps only decode"));
  } else if (!OnlyDecodes(request)) {
    violations.CheckRange("steps", *request.steps, 1, kMaxFlowSteps);
  }
  const auto experts = family.experts.size();
  if (request.guidance_scale.size() > experts) {
    violations.Add("guidance_scale", absl::StrCat("has ", request.guidance_scale.size(),
                                                  " values; must have at most ", experts, " for ",
                                                  std::string(NameOf(family.id))));
  }
  for (size_t i = 0; i < request.guidance_scale.size(); ++i) {
    violations.CheckRange(absl::StrCat("guidance_scale[", i, "]"), request.guidance_scale[i], 0,
                          kMaxGuidanceScale);
  }
  violations.CheckRange("shift", *request.shift, kMinFlowShift, kMaxFlowShift);
  if (!request.sigmas.empty()) {
    auto problem = ProblemOfSigmas(request.sigmas, *request.steps, *request.shift);
    if (problem.has_value()) {
      violations.Add("sigmas", *std::move(problem));
    }
    if (request.solver != kSolverOfSigmas) {
      violations.Add("solver", absl::StrCat("is '", request.solver, "'; must be ", kSolverOfSigmas,
                                            " for a request with sigmas"));
    }
  }
  if (request.boundary_step.has_value()) {
    auto problem = ProblemOfBoundary(*request.boundary_step, *request.steps, family);
    if (problem.has_value()) violations.Add("boundary_step", *std::move(problem));
  }
  const std::vector<std::string> solvers = FlowSolverNames();
  if (std::find(solvers.begin(), solvers.end(), request.solver) == solvers.end()) {
    violations.Add("solver", absl::StrCat("is '", request.solver, "'; must be one of ",
                                          absl::StrJoin(solvers, ", ")));
  }
  if (request.preview_interval < 0) {
    violations.Add("preview_interval", absl::StrCat("is ", request.preview_interval,
                                                    "; must be 0 (no previews) or more"));
  }
}

void CheckQuality(const GenerationRequest& request, const PlannedModel& model,
                  Violations& violations) {
  const std::string is = absl::StrCat("is ", std::string(NameOf(*request.quality)));
  const bool rounds = RoundsToEightBits(*request.quality);
  if (rounds && model.no_eight_bits.has_value()) {
    violations.Add("quality", absl::StrCat(is, "; must be exact ", *model.no_eight_bits));
  }
  if (!rounds && model.options.eight_bit_weights.transformers) {
    violations.Add("quality", absl::StrCat(is,
                                           "; must be high or fast, because this server keeps the "
                                           "transformers' weights in 8 bits (eight_bit_weights)"));
  }
}

void CheckDecoder(const GenerationRequest& request, const PlannedModel& model,
                  Violations& violations) {
  if (*request.decoder == Decoder::kFull || model.vae.tiny_decoder.has_value()) return;
  if (!model.tiny_decoder_error.ok()) {
    violations.Add(
        "decoder",
        absl::StrCat("is tiny; must be full, because the tiny decoder of model '", request.model,
                     "' cannot be used: ", std::string(model.tiny_decoder_error.message())));
    return;
  }
  violations.Add("decoder",
                 absl::StrCat("is tiny; must be full, because model '", request.model,
                              "' was loaded without the file of a tiny decoder (the part "
                              "tiny_decoder, for example taew",
                              model.vae.kind == VaeKind::kWan21 ? "2_1" : "2_2", ".safetensors)"));
}

void CheckLoras(const GenerationRequest& request, const PlannedModel& model,
                Violations& violations) {
  if (request.loras.size() > kMaxLorasOfRequest) {
    violations.Add("loras", absl::StrCat("has ", request.loras.size(),
                                         " entries; must have at most ", kMaxLorasOfRequest));
  }
  std::set<std::string_view> seen;
  for (size_t i = 0; i < request.loras.size(); ++i) {
    const LoraScale& lora = request.loras[i];
    const std::string field = absl::StrCat("loras[", i, "]");
    const auto same_name = [&](const PlannedLora& known) { return known.name == lora.name; };
    if (std::none_of(model.loras.begin(), model.loras.end(), same_name)) {
      const std::string known = absl::StrJoin(
          model.loras, ", ",
          [](std::string* out, const PlannedLora& entry) { out->append(entry.name); });
      violations.Add(field + ".name",
                     absl::StrCat("'", lora.name, "' is not a LoRA of model '", request.model,
                                  "', whose LoRAs are: ", known.empty() ? "none" : known));
    } else if (!seen.insert(lora.name).second) {
      violations.Add(field + ".name",
                     absl::StrCat("'", lora.name, "' is named twice; name each LoRA once"));
    }
    violations.CheckRange(field + ".scale", lora.scale, -kMaxLoraScale, kMaxLoraScale);
    for (const auto& [name, scale] :
         {std::pair("high_scale", lora.high_scale), std::pair("low_scale", lora.low_scale)}) {
      if (!scale.has_value()) continue;
      const std::string own = absl::StrCat(field, ".", name);
      violations.CheckRange(own, *scale, -kMaxLoraScale, kMaxLoraScale);
      if (model.family->experts.size() > 1) continue;
      violations.Add(own, absl::StrCat("is ", *scale, "; must be left out, because ",
                                       std::string(NameOf(model.family->id)), " has one expert"));
    }
  }
}

// Checks that the request has the values for which a few-step checkpoint was distilled.
void CheckFewStep(const GenerationRequest& request, const SamplingDefaults& fixed,
                  Violations& violations) {
  if (*request.steps != fixed.steps) {
    violations.Add("steps", absl::StrCat("is ", *request.steps, "; must be ", fixed.steps,
                                         ", the number that this few-step model was made for"));
  }
  if (request.solver != fixed.solver) {
    violations.Add("solver", absl::StrCat("is '", request.solver, "'; must be ",
                                          std::string(fixed.solver), " for this few-step model"));
  }
  for (size_t i = 0; i < request.guidance_scale.size(); ++i) {
    if (request.guidance_scale[i] == 1) continue;
    violations.Add(absl::StrCat("guidance_scale[", i, "]"),
                   absl::StrCat("is ", request.guidance_scale[i],
                                "; must be 1, because this few-step model runs without guidance"));
  }
  if (!request.negative_prompt->empty()) {
    violations.Add("negative_prompt",
                   "must be left out, because this few-step model runs without guidance");
  }
  if (!request.sigmas.empty()) {
    violations.Add("sigmas", "must be left out, because this few-step model has its own");
  }
  if (request.boundary_step.has_value()) {
    violations.Add("boundary_step", "must be left out, because this few-step model has its own");
  }
}

// Checks a request for a job that measures ratios.
void CheckCalibration(const GenerationRequest& request, const PlannedModel& model,
                      Violations& violations) {
  if (*request.quality != Quality::kExact) {
    violations.Add("quality", absl::StrCat("is ", std::string(NameOf(*request.quality)),
                                           "; must be exact in a job that calibrates"));
  }
  if (model.few_step.has_value()) {
    violations.Add("calibrate",
                   "is true; must be false for this few-step model, which has no steps to skip");
  }
  if (!model.few_step.has_value() && (HasFewSteps(model, request) || request.solver == "lcm")) {
    violations.Add(
        "calibrate",
        "is true; must be false for a request with a few-step LoRA, sigmas, a "
        "boundary_step or the solver lcm, whose steps say nothing about those of others");
  }
  if (model.ranks > 1) {
    violations.Add("calibrate", absl::StrCat("is true; must be false on a group of ", model.ranks,
                                             " devices; one device alone measures ratios"));
  }
}

// Checks that a progressive request has an MP4 file among its outputs.
void CheckProgressive(const GenerationRequest& request, Violations& violations) {
  const std::vector<OutputKind>& outputs = request.outputs;
  if (!request.progressive ||
      std::find(outputs.begin(), outputs.end(), OutputKind::kMp4) != outputs.end()) {
    return;
  }
  violations.Add("progressive",
                 "is true; must be false for a request without mp4 among its outputs");
}

constexpr double kTrainTimesteps = 1000;

// Checks the image and its background.
void CheckImage(const GenerationRequest& request, const ModelFamily& family,
                Violations& violations) {
  const bool has_image = request.image != nullptr;
  if (has_image && family.image == ImageRole::kNone) {
    violations.Add(
        "image", absl::StrCat(std::string(NameOf(family.id)), " takes no image; must be left out"));
  }
  if (!has_image && !family.accepts_text_only && !OnlyDecodes(request)) {
    violations.Add("image", absl::StrCat(std::string(NameOf(family.id)),
                                         " needs an image; must be a PNG, JPEG or WebP file"));
  }
  if (!has_image && request.background.has_value()) {
    violations.Add("background",
                   "is set, but there is no image; must be left out of a text-to-video request");
  }
}

// Checks everything except the memory that the job of `plan` takes. Returns the video's size;
// nullopt only after a violation.
std::optional<VideoShape> CheckRequest(const GenerationPlan& plan, const PlannedModel& model,
                                       const InspectedRequest& inspected, Violations& violations) {
  const GenerationRequest& request = plan.request;
  const bool only_decodes = OnlyDecodes(request);
  if (!only_decodes) CheckTexts(inspected, model.transformer.text_len, violations);
  CheckImage(request, *model.family, violations);
  CheckSampling(request, *model.family, violations);
  CheckProgressive(request, violations);
  CheckQuality(request, model, violations);
  CheckDecoder(request, model, violations);
  CheckLoras(request, model, violations);
  if (model.few_step.has_value() && !only_decodes) {
    CheckFewStep(request, FewStepSampling(*model.few_step), violations);
  }
  if (request.calibrate) {
    CheckCalibration(request, model, violations);
  } else if (request.quality == Quality::kFast && !model.no_eight_bits.has_value() &&
             !only_decodes) {
    if (auto problem = ProblemOfFast(request, model, plan.guided); problem.has_value()) {
      violations.Add("quality", *std::move(problem));
    }
  }
  std::optional<VideoShape> shape = DecideShape(request, model, inspected, violations);
  violations.Add(CheckLatents(request, model, inspected, shape));
  return shape;
}

absl::StatusOr<FlowSchedule> MakeSchedule(const GenerationRequest& request,
                                          const PlannedModel& model) {
  if (model.few_step.has_value()) {
    return MakeEulerSchedule(model.few_step->timesteps, *request.shift, model.few_step->rounding);
  }
  if (!request.sigmas.empty()) {
    return MakeEulerSchedule(TimestepsOf(request.sigmas), *request.shift);
  }
  return MakeFlowSchedule(request.solver, *request.steps, *request.shift);
}

// Assigns each step its expert and guidance scale.
std::vector<StepPlan> PlanSteps(const std::vector<double>& timesteps, const PlannedModel& model,
                                const GenerationRequest& request) {
  const std::vector<double>& guidance_scale = request.guidance_scale;
  const std::span<const ExpertRole> experts = model.family->experts;
  std::vector<StepPlan> steps;
  for (size_t i = 0; i < timesteps.size(); ++i) {
    bool low_noise = true;
    if (request.boundary_step.has_value()) {
      low_noise = static_cast<int>(i) >= *request.boundary_step;
    } else if (model.few_step.has_value() && model.few_step->boundary_step_index.has_value()) {
      low_noise = static_cast<int>(i) >= *model.few_step->boundary_step_index;
    } else if (model.expert_boundary.has_value()) {
      low_noise = timesteps[i] < *model.expert_boundary * kTrainTimesteps;
    }
    // A single expert computes all steps; a single scale serves both experts.
    steps.push_back({timesteps[i], low_noise ? experts.back() : experts.front(),
                     low_noise ? guidance_scale.front() : guidance_scale.back()});
  }
  return steps;
}

// Plans the steps that the job computes, and their noise levels.
absl::Status PlanDenoising(const PlannedModel& model, GenerationPlan& plan) {
  absl::StatusOr<FlowSchedule> schedule = MakeSchedule(plan.request, model);
  if (!schedule.ok()) return schedule.status();
  plan.steps = PlanSteps(schedule->timesteps, model, plan.request);
  plan.sigmas = std::move(schedule->sigmas);
  if (const auto violation = SetFirstStep(plan)) return InvalidFields({*violation});
  if (plan.request.quality == Quality::kFast) PlanFastSteps(model, plan);
  DropEarlierSteps(plan);
  return absl::OkStatus();
}

void SetMemory(const StageMemory& memory, StagePlan& stage) {
  stage.weight_bytes = memory.weights;
  stage.activation_bytes = memory.activations;
  stage.workspace_bytes = std::min(memory.activations, kLibraryWorkspaceBytes);
  stage.host_bytes = memory.host;
}

LatentSize LatentsOf(const GenerationPlan& plan) {
  return {plan.latent_shape[1], plan.latent_shape[2], plan.latent_shape[3]};
}

// Returns the operations of encoding the image: as a video of one frame, or as a video as long as
// the result.
double ImageFlops(const GenerationPlan& plan, const PlannedModel& model) {
  LatentSize encoded = LatentsOf(plan);
  if (model.family->image == ImageRole::kFirstFrame) encoded.frames = 1;
  return EncodingFlops(model.vae, encoded);
}

// Tiles overlap, so they cost more work than whole frames.
double DecodingFlopsOf(const GenerationPlan& plan, const PlannedModel& model) {
  const TileGrid& grid = plan.decode_tiles;
  return grid.rows * grid.columns *
         DecodingFlops(model.vae, TileOf(LatentsOf(plan), grid), *plan.request.decoder);
}

StageMethod MethodOf(const GenerationPlan& plan, const StepPlan& step) {
  if (step.reuses_blocks) return StageMethod::kReuse;
  return plan.eight_bits ? StageMethod::kEightBits : StageMethod::kExact;
}

StageMethod MethodOf(Decoder decoder) {
  return decoder == Decoder::kTiny ? StageMethod::kTinyDecoder : StageMethod::kExact;
}

std::vector<StagePlan> PlanStages(const GenerationPlan& plan, const PlannedModel& model,
                                  const InspectedRequest& inspected,
                                  const std::optional<ResidencyChoice>& memory) {
  const int64_t text_tokens = inspected.prompt_tokens.value_or(0) +
                              (plan.guided ? inspected.negative_prompt_tokens.value_or(0) : 0);
  const double text_flops = TextEncoderFlops(model.text_encoder, text_tokens);
  std::vector<StagePlan> stages;
  stages.push_back({model.family->preprocess, {}});
  if (memory.has_value()) stages.back().host_bytes = memory->preprocess.host;
  if (plan.denoises()) {
    stages.push_back({StageKind::kT5Encoding, text_flops});
    if (memory.has_value()) SetMemory(memory->text_encoding, stages.back());
  }
  if (plan.image_to_video) {
    stages.push_back({StageKind::kVaeEncoding, ImageFlops(plan, model)});
    if (memory.has_value()) SetMemory(memory->vae_encoding, stages.back());
  }
  for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
    stages.push_back({{StageKind::kStepLoading, step}, {}});
    const bool guided = plan.guided && plan.steps[step].guidance_scale != 1;
    const double forward_flops =
        plan.steps[step].reuses_blocks ? plan.reuse_flops : plan.forward_flops;
    stages.push_back({{StageKind::kStepInference, step}, (guided ? 2 : 1) * forward_flops});
    stages.back().method = MethodOf(plan, plan.steps[step]);
    if (stages.back().method == StageMethod::kEightBits) {
      stages.back().exact_blocks = static_cast<int>(plan.exact_blocks.size());
    }
    if (memory.has_value()) {
      SetMemory(memory->steps[ExpertIndex(plan.steps[step].expert)], stages.back());
    }
  }
  if (plan.decodes()) {
    stages.push_back({StageKind::kVaeDecoding, DecodingFlopsOf(plan, model)});
    stages.back().method = MethodOf(*plan.request.decoder);
    if (memory.has_value()) SetMemory(memory->decoding, stages.back());
    stages.push_back({StageKind::kVideoEncoding, {}});
  }
  return stages;
}

}  // namespace

GenerationRequest ResolveRequest(GenerationRequest request, const PlannedModel& model,
                                 int64_t drawn_seed) {
  const bool is_few_step = TakeLoraSchedule(model, request);
  if (!request.sigmas.empty()) {
    if (!request.steps) request.steps = static_cast<int>(request.sigmas.size());
    if (request.solver.empty()) request.solver = kSolverOfSigmas;
  }
  const bool chooses_quality = request.quality.has_value();
  FillUnset(model.Defaults(), request);
  // The operator's default suits schedules of many steps.
  if (is_few_step && !chooses_quality && request.quality == Quality::kFast &&
      ProblemOfFast(request, model, /*guided=*/false).has_value()) {
    request.quality = Quality::kHigh;
  }
  if (!request.seed || *request.seed < 0) request.seed = drawn_seed;
  if (request.image != nullptr && !request.background) request.background = Color();
  return request;
}

absl::StatusOr<GenerationPlan> MakePlan(const GenerationRequest& resolved,
                                        const PlannedModel& model,
                                        const InspectedRequest& inspected,
                                        const PlanLimits& limits) {
  GenerationPlan plan;
  plan.request = resolved;
  plan.prepared = inspected.prepared;
  const bool only_decodes = OnlyDecodes(plan.request);
  // With a guidance scale of exactly 1, a step uses only the prompt's flow.
  plan.guided = !model.few_step.has_value() && !only_decodes &&
                std::any_of(plan.request.guidance_scale.begin(), plan.request.guidance_scale.end(),
                            [](double scale) { return scale != 1; });
  plan.eight_bits = RoundsToEightBits(*plan.request.quality) && !only_decodes;
  if (plan.eight_bits) plan.exact_blocks = model.ExactBlocks();
  plan.eight_bit_weights = model.options.eight_bit_weights;
  plan.image_to_video = plan.request.image != nullptr;

  Violations violations(inspected.violations);
  const std::optional<VideoShape> shape = CheckRequest(plan, model, inspected, violations);
  if (!violations.list().empty()) return InvalidFields(violations.list());

  plan.shape = *shape;
  plan.request.width = plan.shape.width;
  plan.request.height = plan.shape.height;
  plan.request.size_is_exact = true;
  if (!only_decodes) {
    if (absl::Status planned = PlanDenoising(model, plan); !planned.ok()) return planned;
  }
  absl::StatusOr<std::optional<ResidencyChoice>> memory =
      PlanMemory(model, inspected, limits, plan);
  if (!memory.ok()) return memory.status();
  plan.forward_flops = TransformerForwardFlops(model.transformer, plan.tokens);
  plan.reuse_flops = TransformerEndsFlops(model.transformer, plan.tokens);
  plan.stages = PlanStages(plan, model, inspected, *memory);
  plan.blocks = static_cast<int>(model.transformer.num_layers);
  plan.block_operators =
      TransformerBlockOperators(model.transformer, plan.tokens, /*batch=*/1, model.element_bytes);
  plan.device_memory_bytes = limits.device_memory_bytes;
  return plan;
}

}  // namespace wan
