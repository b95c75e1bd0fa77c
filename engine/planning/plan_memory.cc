#include "engine/planning/plan_memory.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/media/image_resize.h"

namespace wan {
namespace {

// Returns, for each expert, the device memory that merging the request's LoRAs takes.
std::vector<uint64_t> MergingBytes(const std::vector<LoraScale>& loras, const PlannedModel& model) {
  std::vector<std::vector<LoraFootprint>> footprints(model.family->experts.size());
  for (const LoraScale& chosen : loras) {
    for (const PlannedLora& lora : model.loras) {
      if (lora.name != chosen.name) continue;
      for (size_t expert = 0; expert < lora.experts.size(); ++expert) {
        if (!lora.experts[expert].has_value()) continue;
        if (chosen.For(model.family->experts[expert]) == 0) continue;  // the request merges no LoRA
        footprints[expert].push_back(*lora.experts[expert]);
      }
    }
  }
  std::vector<uint64_t> bytes;
  const int64_t read_again = model.options.eight_bit_weights.transformers ? model.element_bytes : 0;
  for (const auto& expert : footprints) bytes.push_back(LoraMergingBytes(expert, read_again));
  return bytes;
}

int CountWriters(const std::vector<OutputKind>& outputs) {
  return static_cast<int>(std::count_if(outputs.begin(), outputs.end(), [](OutputKind kind) {
    return kind != OutputKind::kLatents;
  }));
}

// Returns whether the two forwards of a guided step should run as one batch.
bool BatchesGuidance(GuidanceBatching batching, int64_t tokens, int64_t ranks) {
  switch (batching) {
    case GuidanceBatching::kAuto:
      // Each half of an even number of devices computes one of the two forwards, in parallel.
      return tokens <= kMaxTokensBatched || ranks % 2 == 0;
    case GuidanceBatching::kBatched:
      return true;
    case GuidanceBatching::kSplit:
      return false;
  }
  return false;
}

// Returns the most host memory that PrepareImage (engine/pipeline/image_input.h) uses, including
// the image.
uint64_t FittingBytes(ImageSize image, ImageRole role, const VideoShape& shape) {
  constexpr int64_t kRgbBytes = 3;
  constexpr int64_t kFloatBytes = 3 * sizeof(float);
  const int64_t pixels = int64_t{image.width} * image.height;
  if (role == ImageRole::kCondition) {
    // There are four copies: the image, the cut image, its colour planes, and these planes in fp32.
    return static_cast<uint64_t>(pixels * (3 * kRgbBytes + kFloatBytes));
  }
  const double scale = std::max(static_cast<double>(shape.width) / image.width,
                                static_cast<double>(shape.height) / image.height);
  const auto covering =
      static_cast<int64_t>(std::ceil(image.width * scale) * std::ceil(image.height * scale));
  const int64_t covered = std::min(covering, kMostCoveringPixels);
  // The resize first changes the width, then the height.
  const int64_t wide = std::max(pixels, covered);
  return static_cast<uint64_t>((pixels + wide + covered) * kRgbBytes);
}

// Sets the host memory of the request's latents. The files take memory all the time. While a file
// is read, a copy of its values and the values in fp32 take more.
void SetLatentsBytes(const GenerationRequest& request, MemoryJob& job) {
  constexpr uint64_t kCopies = 1 + 2;  // fp32 values are at most twice as large as a file's values
  for (const auto* file : {request.initial_latents.get(), request.latents.get()}) {
    if (file == nullptr) continue;
    job.latents_bytes += file->size();
    job.latents_reading_bytes =
        std::max<uint64_t>(job.latents_reading_bytes, kCopies * file->size());
  }
}

// Describes the job of `plan` as if its video had the given shape.
MemoryJob MakeMemoryJob(const GenerationPlan& plan, const VideoShape& shape,
                        const PlannedModel& model, const InspectedRequest& inspected) {
  const std::vector<int64_t> latents = LatentShape(model, shape);
  const int64_t tokens = CountTokens(model, latents);
  // With an odd number of devices, count the smaller half, which has the least memory per step.
  const int64_t ranks = model.divides_experts ? model.ranks / 2 : model.ranks;
  const bool batches = plan.request.batched_guidance.value_or(
      BatchesGuidance(model.options.guidance_batching, tokens, ranks));
  MemoryJob job{.transformer = model.transformer,
                .text_encoder = model.text_encoder,
                .vae = model.vae,
                .element_bytes = model.element_bytes,
                .vae_arithmetic = {.precision = *plan.request.vae_precision,
                                   .fused = model.fuses_convolutions,
                                   .decoder = *plan.request.decoder},
                .latents = {latents[1], latents[2], latents[3]},
                .tokens = tokens,
                .text_tokens = std::max(inspected.prompt_tokens.value_or(0),
                                        inspected.negative_prompt_tokens.value_or(0)),
                .guided = plan.guided,
                // Ratios are measured with one forward at a time.
                .batches_guidance = plan.guided && batches && !plan.request.calibrate,
                .preprocess = model.family->preprocess,
                .image = plan.image_to_video ? model.family->image : ImageRole::kNone,
                .previews = plan.request.preview_interval > 0 && plan.denoises(),
                .decodes = plan.decodes(),
                .frame_pixels = int64_t{shape.width} * shape.height,
                .frame_height = shape.height,
                .frames = shape.num_frames,
                .writers = CountWriters(plan.request.outputs),
                .expert_steps = std::vector<int>(model.family->experts.size()),
                .expert_merging_bytes = MergingBytes(plan.request.loras, model),
                .keeps_blocks = plan.keeps_blocks(),
                .records_forwards = model.records_forwards && !plan.keeps_blocks(),
                .eight_bits = plan.eight_bits,
                .eight_bit_weights = plan.eight_bit_weights,
                .ranks = ranks};
  for (const StepPlan& step : plan.steps) {
    if (!step.reuses_blocks) ++job.expert_steps[ExpertIndex(step.expert)];
  }
  if (inspected.image.has_value()) {
    job.image_bytes = std::max(static_cast<uint64_t>(inspected.image_decoding_bytes),
                               FittingBytes(*inspected.image, model.family->image, shape));
  }
  SetLatentsBytes(plan.request, job);
  return job;
}

void SetResidency(const ResidencyChoice& choice, const PlannedModel& model, GenerationPlan& plan) {
  for (size_t i = 0; i < choice.policies.size(); ++i) {
    plan.residency.push_back({model.components[i].component, choice.policies[i]});
  }
  plan.batched_guidance = choice.batched_guidance;
  plan.prefetch_experts = choice.prefetch_experts;
  plan.record_forwards = choice.record_forwards;
  plan.decode_tiles = choice.decode_tiles;
  plan.queued_frames = choice.queued_frames;
  plan.peak_device_bytes = choice.peak;
  plan.peak_host_bytes = choice.host_peak;
}

std::string GiB(uint64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
}

// Searches by bisection. Returns the last value from 0 to `limit` for which the monotone predicate
// holds; -1 if it never holds.
template <typename Predicate>
int64_t LastWhere(int64_t limit, const Predicate& holds) {
  int64_t below = -1;
  int64_t beyond = limit + 1;
  while (below + 1 < beyond) {
    const int64_t middle = below + (beyond - below) / 2;
    (holds(middle) ? below : beyond) = middle;
  }
  return below;
}

std::string Frames(const VideoShape& shape) {
  return absl::StrCat(shape.num_frames, shape.num_frames == 1 ? " frame" : " frames");
}

// Explains why a job does not fit, and what would fit.
std::string DescribeShortage(const GenerationPlan& plan, const MemoryJob& job,
                             const PlannedModel& model, const InspectedRequest& inspected,
                             const PlanLimits& limits) {
  const auto fits = [&](const VideoShape& shape) {
    return ChooseResidency(model.components, MakeMemoryJob(plan, shape, model, inspected), limits)
        .has_value();
  };
  const LeastDemand demand = FindLeastDemand(model.components, job, limits);
  const uint64_t needed = demand.of_host ? demand.memory.host : demand.memory.total();
  std::string text = absl::StrCat("a video of ", plan.shape.width, "x", plan.shape.height, " and ",
                                  Frames(plan.shape), " needs ", GiB(needed), " of ",
                                  demand.of_host ? "host" : "device", " memory in ",
                                  std::string(NameOf(demand.stage)));
  if (demand.of_host) {
    absl::StrAppend(&text, " (", GiB(demand.memory.host_pinned),
                    " of it for weights that wait there); ", GiB(limits.host.available_bytes),
                    " is available to this process.");
  } else {
    absl::StrAppend(&text, " (", GiB(demand.memory.weights), " of it for weights); ",
                    GiB(limits.device_memory_bytes), " is available.");
  }

  const int step = static_cast<int>(model.vae.stride_temporal);
  const auto shorter = [&](int64_t steps) {
    VideoShape shape = plan.shape;
    shape.num_frames = 1 + static_cast<int>(steps) * step;
    return shape;
  };
  const int stride = model.SpatialStride();
  const auto smaller = [&](int64_t columns) {
    VideoShape shape = plan.shape;
    // Keep the aspect ratio as well as the grid of sizes allows.
    shape.width = static_cast<int>(columns) * stride;
    shape.height = shape.width * plan.shape.height / plan.shape.width / stride * stride;
    return shape;
  };
  const int64_t steps = LastWhere((plan.shape.num_frames - 1) / step,
                                  [&](int64_t count) { return fits(shorter(count)); });
  const int64_t columns = LastWhere(plan.shape.width / stride, [&](int64_t count) {
    // A video without rows counts as fitting, so that the predicate is monotone.
    return smaller(count).height < stride || fits(smaller(count));
  });
  const bool smaller_fits = columns > 0 && smaller(columns).height >= stride;
  if (steps >= 0) {
    const VideoShape longest = shorter(steps);
    absl::StrAppend(&text, " At this size at most ", Frames(longest),
                    longest.num_frames == 1 ? " fits." : " fit.");
  }
  if (smaller_fits) {
    absl::StrAppend(&text, " With this many frames at most ", smaller(columns).width, "x",
                    smaller(columns).height, " fits.");
  }
  if (steps < 0 && !smaller_fits) {
    absl::StrAppend(&text, " No video of this model fits: ",
                    demand.of_host
                        ? "give the host, or its container's limit, more memory, keep more of the "
                          "weights on the device, or give them the policy disk."
                        : "give its weights more frugal policies (host, stream), or use a larger "
                          "device.");
  }
  return text;
}

}  // namespace

// [C, T, H, W]
std::vector<int64_t> LatentShape(const PlannedModel& model, const VideoShape& shape) {
  return {model.vae.z_dim, (shape.num_frames - 1) / model.vae.stride_temporal + 1,
          shape.height / model.vae.stride_spatial, shape.width / model.vae.stride_spatial};
}

int64_t CountTokens(const PlannedModel& model, const std::vector<int64_t>& latent_shape) {
  const auto& patch = model.transformer.patch_size;
  return latent_shape[1] / patch[0] * (latent_shape[2] / patch[1]) * (latent_shape[3] / patch[2]);
}

size_t ExpertIndex(ExpertRole expert) { return expert == ExpertRole::kLowNoise ? 1 : 0; }

absl::StatusOr<std::optional<ResidencyChoice>> PlanMemory(const PlannedModel& model,
                                                          const InspectedRequest& inspected,
                                                          const PlanLimits& limits,
                                                          GenerationPlan& plan) {
  plan.latent_shape = LatentShape(model, plan.shape);
  plan.tokens = CountTokens(model, plan.latent_shape);
  const MemoryJob job = MakeMemoryJob(plan, plan.shape, model, inspected);
  plan.batched_guidance = job.batches_guidance;
  if (model.components.empty()) return std::nullopt;
  std::optional<ResidencyChoice> choice = ChooseResidency(model.components, job, limits);
  if (!choice.has_value()) {
    return InvalidFields({{"num_frames", DescribeShortage(plan, job, model, inspected, limits)}});
  }
  SetResidency(*choice, model, plan);
  return choice;
}

}  // namespace wan
