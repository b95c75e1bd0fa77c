#include "engine/pipeline/video_pipeline.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/api/errors.h"
#include "engine/device/work_gate.h"
#include "engine/media/image_decode.h"
#include "engine/pipeline/denoise_progress.h"
#include "engine/pipeline/denoise_run.h"
#include "engine/pipeline/expert_switch.h"
#include "engine/pipeline/finite_watch.h"
#include "engine/pipeline/prepared_request.h"
#include "engine/pipeline/preview_sender.h"
#include "engine/pipeline/vae_pass.h"
#include "engine/pipeline/video_files.h"
#include "engine/planning/planned_model.h"
#include "engine/planning/tile_geometry.h"
#include "engine/weights/weight_lease.h"

namespace wan {
namespace {

// The objects that every part of one job uses.
struct Job {
  const GenerationPlan& plan;
  const PipelineModel& model;
  Recorder& recorder;
  const WorkGate& gate;
  FiniteWatch& finite;
  GenerationObserver& observer;
  SavepointKeeper* savepoints;  // null: none are kept
  const PipelineTaps& taps;
};

// Runs `work` inside the span `stage` and closes it with its status. No stage begins after a stop
// request.
template <typename Work>
auto InStage(const Job& job, StageKind stage, const Work& work) -> decltype(work()) {
  if (job.gate.RequestedStop()) return job.gate.Pass();
  Span span = job.recorder.StartSpan(stage);
  auto result = work();
  span.Finish(result.status()).IgnoreError();
  return result;
}

// The image as the VAE takes it, [3, 1, H, W]; undefined for text to video. The texts were made
// ready with the plan, for which the image was only measured. Its pixels go when this returns.
absl::StatusOr<at::Tensor> Preprocess(const Job& job) {
  if (!job.plan.image_to_video) return at::Tensor();
  const GenerationRequest& request = job.plan.request;
  const absl::StatusOr<DecodedImage> decoded =
      DecodeImage(*request.image, request.background.value_or(Color()), {}, job.gate.stop_token());
  if (absl::IsCancelled(decoded.status())) return decoded.status();
  if (!decoded.ok()) {
    return InvalidFields({{"image", std::string(decoded.status().message())}});
  }
  return PrepareImage(decoded->image, job.model.planned.family->image, job.plan.shape,
                      job.model.planned.SpatialStride());
}

// Computes the embeddings of both texts.
absl::StatusOr<DenoiseInputs> EncodeTexts(const Job& job, DenoiseInputs inputs) {
  const WeightLease lease(job.model.text_encoder_weights,
                          PolicyOf(job.plan, ModelComponent::kTextEncoder), job.gate.stop_token());
  TextEncoder& encoder = *job.model.text_encoder;
  absl::StatusOr<at::Tensor> prompt = encoder.Encode(job.plan.prepared->prompt.ids, job.gate);
  if (!prompt.ok()) return prompt.status();
  inputs.prompt_embeds = *std::move(prompt);
  if (!job.plan.guided) return inputs;
  absl::StatusOr<at::Tensor> negative =
      encoder.Encode(job.plan.prepared->negative_prompt.ids, job.gate);
  if (!negative.ok()) return negative.status();
  inputs.negative_prompt_embeds = *std::move(negative);
  return inputs;
}

absl::StatusOr<EncodedImage> EncodeImageOf(const Job& job, const at::Tensor& image) {
  const WeightLease lease(job.model.vae_weights, PolicyOf(job.plan, ModelComponent::kVae),
                          job.gate.stop_token());
  absl::StatusOr<EncodedImage> encoded =
      EncodeImage(image, job.model.planned.family->image, job.plan.shape.num_frames, *job.model.vae,
                  MakeVaePass(job.gate, job.plan.request, job.recorder));
  // The image may have been encoded on another device.
  if (encoded.ok() && encoded->condition.defined()) {
    encoded->condition = encoded->condition.to(job.model.device);
  }
  return encoded;
}

// Everything from which the steps start. The device need not be waited for to know whether it is
// finite: the first step, which waits anyway, reads the verdict.
absl::StatusOr<DenoiseInputs> Prepare(const Job& job) {
  const absl::StatusOr<at::Tensor> image =
      InStage(job, job.model.planned.family->preprocess, [&] { return Preprocess(job); });
  if (!image.ok()) return image.status();
  absl::StatusOr<DenoiseInputs> inputs = InStage(job, StageKind::kT5Encoding, [&] {
    return EncodeTexts(job, DenoiseInputs{.plan = job.plan});
  });
  if (!inputs.ok()) return inputs.status();
  if (job.taps.texts) job.taps.texts(inputs->prompt_embeds, inputs->negative_prompt_embeds);
  job.finite.Look(StageKind::kT5Encoding, "the embeddings of the prompt", inputs->prompt_embeds);
  if (inputs->negative_prompt_embeds.defined()) {
    job.finite.Look(StageKind::kT5Encoding, "the embeddings of the negative prompt",
                    inputs->negative_prompt_embeds);
  }

  if (image->defined()) {
    absl::StatusOr<EncodedImage> encoded =
        InStage(job, StageKind::kVaeEncoding, [&] { return EncodeImageOf(job, *image); });
    if (!encoded.ok()) return encoded.status();
    if (job.taps.image) job.taps.image(*image, *encoded);
    inputs->first_frame_latents = encoded->first_frame_latents;
    inputs->condition = encoded->condition;
    const bool is_frame = encoded->first_frame_latents.defined();
    job.finite.Look(StageKind::kVaeEncoding, "the latents of the image",
                    is_frame ? encoded->first_frame_latents : encoded->condition);
  }
  return inputs;
}

// Returns the progress of an earlier attempt, in host memory; nullopt if there is none.
std::optional<DenoiseProgress> EarlierProgress(const Job& job) {
  if (job.savepoints == nullptr) return std::nullopt;
  const std::optional<Savepoint> savepoint = job.savepoints->Load();
  if (!savepoint.has_value()) return std::nullopt;
  absl::StatusOr<DenoiseProgress> progress = FromSavepoint(*savepoint, job.plan);
  if (!progress.ok()) {
    job.savepoints->Refuse(std::string(progress.status().message()));
    return std::nullopt;
  }
  job.observer.OnResumed(progress->steps_done);
  return *std::move(progress);
}

DenoiseProgress AtNoise(const Job& job) {
  DenoiseProgress progress;
  progress.latents = DrawNoise(job.plan.latent_shape, *job.plan.request.seed, job.model.device);
  if (job.taps.noise) job.taps.noise(progress.latents);
  return progress;
}

// Returns latents that are finite: a savepoint's were looked at when it was read, and those of the
// last step with the step.
absl::StatusOr<at::Tensor> Denoise(const Job& job) {
  const std::optional<DenoiseProgress> earlier = EarlierProgress(job);
  if (earlier.has_value() && earlier->steps_done == static_cast<int>(job.plan.steps.size())) {
    return earlier->latents.to(job.model.device);
  }
  // Made first, because it queues the copies that run while the texts are encoded.
  ExpertSwitch experts(job.plan, job.model, job.recorder, job.gate);
  const absl::StatusOr<DenoiseInputs> inputs = Prepare(job);
  if (!inputs.ok()) return inputs.status();
  PreviewSender previews(job.plan, job.model, job.observer, job.gate);
  return RunDenoising(*inputs, earlier.has_value() ? earlier->To(job.model.device) : AtNoise(job),
                      {.experts = experts,
                       .recorder = job.recorder,
                       .gate = job.gate,
                       .finite = job.finite,
                       .observer = job.observer,
                       .savepoints = job.savepoints,
                       .on_step = [&](const DenoiseState& state) {
                         if (job.taps.step) job.taps.step(state);
                         return previews.AfterStep(state);
                       }});
}

}  // namespace

absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              SavepointKeeper* savepoints, const PipelineTaps& taps) {
  if (plan.prepared == nullptr) {
    return absl::InternalError(
        "the plan has no prepared request; only Engine::Plan makes one that can run");
  }
  const WorkGate gate(model.device, std::move(stop));
  FiniteWatch finite(plan);
  const Job job{plan, model, recorder, gate, finite, observer, savepoints, taps};
  const absl::StatusOr<at::Tensor> latents = Denoise(job);
  if (!latents.ok()) return latents.status();
  VideoFiles files(plan, outputs, observer);
  absl::Status status = files.WriteLatents(*latents);
  if (!status.ok() || !plan.decodes()) return status;
  return files.WriteFrames(*latents, model, recorder, gate, taps.frames);
}

}  // namespace wan
