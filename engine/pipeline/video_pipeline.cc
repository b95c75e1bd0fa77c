#include "engine/pipeline/video_pipeline.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/api/errors.h"
#include "engine/device/work_gate.h"
#include "engine/media/image_decode.h"
#include "engine/pipeline/denoise_progress.h"
#include "engine/pipeline/denoise_run.h"
#include "engine/pipeline/expert_switch.h"
#include "engine/pipeline/finite_watch.h"
#include "engine/pipeline/latents_input.h"
#include "engine/pipeline/prepared_request.h"
#include "engine/pipeline/preview_sender.h"
#include "engine/pipeline/vae_pass.h"
#include "engine/pipeline/video_decode.h"
#include "engine/pipeline/video_files.h"
#include "engine/planning/planned_model.h"
#include "engine/schedulers/seeded_noise.h"
#include "engine/weights/weight_lease.h"

namespace wan {
namespace {

// Arguments that the caller passes for a job.
struct Caller {
  std::span<const OutputFile> outputs;
  Recorder& recorder;
  GenerationObserver& observer;
  SavepointKeeper* savepoints;  // null: no savepoints are made
  const PipelineTaps& taps;
};

// Returns the progress of an earlier attempt, in host memory; nullopt if no attempt left one. Fails
// with the keeper's errors.
absl::StatusOr<std::optional<DenoiseProgress>> EarlierProgress(const GenerationPlan& plan,
                                                               const Caller& caller) {
  if (caller.savepoints == nullptr) return std::nullopt;
  const absl::StatusOr<std::optional<Savepoint>> savepoint = caller.savepoints->Load();
  if (!savepoint.ok()) return savepoint.status();
  if (!savepoint->has_value()) return std::nullopt;
  absl::StatusOr<DenoiseProgress> progress = FromSavepoint(**savepoint, plan);
  if (!progress.ok()) {
    const absl::Status refused =
        caller.savepoints->Refuse(std::string(progress.status().message()));
    if (!refused.ok()) return refused;
    return std::nullopt;
  }
  caller.observer.OnResumed(progress->steps_done);
  return *std::move(progress);
}

// Runs one job. Call each stage once, in order, for as long as they succeed. Each stage opens its
// own spans.
class VideoJob {
 public:
  // If `earlier`, the progress of an earlier attempt, already has all steps, the stages before
  // WriteLatents do nothing.
  VideoJob(const GenerationPlan& plan, const PipelineModel& model, const Caller& caller,
           std::optional<DenoiseProgress> earlier, std::stop_token stop);

  // Prepares the image for the autoencoder, or the latents that the job only decodes. The texts
  // were prepared together with the plan.
  absl::Status Preprocess();
  absl::Status EncodeTexts();
  absl::Status EncodeImage();
  // Runs all steps, starting from the noise or the request's latents; after a savepoint, runs only
  // the remaining steps. Then frees the memory that only the steps need.
  absl::Status Denoise();
  absl::Status WriteLatents() { return files_.WriteLatents(latents_); }
  // Decodes the video into its files, if the job wants any.
  absl::Status Decode();

 private:
  // Runs `work` inside the span `stage`, and closes the span with the status of `work`. After a
  // stop request it returns CANCELLED instead.
  template <typename Work>
  absl::Status InStage(StageKind stage, const Work& work) const;
  absl::StatusOr<at::Tensor> PreparedImage() const;
  absl::Status EncodeBothTexts();
  absl::StatusOr<EncodedImage> EncodedInput() const;
  at::Tensor Noise() const;
  DenoiseProgress Start() const;
  // Returns whether the final latents exist: all steps are finished, or the job has no steps.
  bool denoised() const { return latents_.defined(); }

  const GenerationPlan& plan_;
  const PipelineModel& model_;
  const Caller caller_;
  const WorkGate gate_;
  FiniteWatch finite_;
  VideoFiles files_;
  std::optional<DenoiseProgress> earlier_;
  std::optional<ExpertSwitch> experts_;  // empty once the steps are done
  at::Tensor image_;                     // the image, [3, 1, H, W]; undefined for text to video
  std::optional<DenoiseInputs> inputs_;
  at::Tensor latents_;
};

VideoJob::VideoJob(const GenerationPlan& plan, const PipelineModel& model, const Caller& caller,
                   std::optional<DenoiseProgress> earlier, std::stop_token stop)
    : plan_(plan),
      model_(model),
      caller_(caller),
      gate_(model.device, std::move(stop)),
      finite_(plan),
      files_(plan, caller.outputs, caller.observer),
      earlier_(std::move(earlier)) {
  if (!plan.denoises()) return;
  if (earlier_.has_value() && earlier_->steps_done == static_cast<int>(plan.steps.size())) {
    // These latents are finite, because reading a savepoint checks that.
    latents_ = earlier_->latents.to(model.device);
    earlier_.reset();
    return;
  }
  // Create the experts first: this queues copies, which run while the texts are encoded.
  experts_.emplace(plan, model, caller.recorder, gate_);
  inputs_.emplace(DenoiseInputs{.plan = plan});
}

template <typename Work>
absl::Status VideoJob::InStage(StageKind stage, const Work& work) const {
  if (gate_.RequestedStop()) return gate_.Pass();
  Span span = caller_.recorder.StartSpan(stage);
  return span.Finish(work());
}

absl::Status VideoJob::Preprocess() {
  if (denoised()) return absl::OkStatus();
  return InStage(model_.planned.family->preprocess, [&]() -> absl::Status {
    if (!plan_.denoises()) latents_ = ToLatents(*plan_.prepared->latents, model_.device);
    if (!plan_.image_to_video) return absl::OkStatus();
    absl::StatusOr<at::Tensor> image = PreparedImage();
    if (!image.ok()) return image.status();
    image_ = *std::move(image);
    return absl::OkStatus();
  });
}

// Returns the image in the form that the VAE takes. Decodes the image, which the plan has only
// measured, and frees the decoded picture before it returns.
absl::StatusOr<at::Tensor> VideoJob::PreparedImage() const {
  const GenerationRequest& request = plan_.request;
  const absl::StatusOr<DecodedImage> decoded =
      DecodeImage(*request.image, request.background.value_or(Color()), {}, gate_.stop_token());
  if (absl::IsCancelled(decoded.status())) return decoded.status();
  if (!decoded.ok()) {
    return InvalidFields({{"image", std::string(decoded.status().message())}});
  }
  return PrepareImage(decoded->image, model_.planned.family->image, plan_.shape,
                      model_.planned.SpatialStride());
}

absl::Status VideoJob::EncodeTexts() {
  if (denoised()) return absl::OkStatus();
  absl::Status status = InStage(StageKind::kT5Encoding, [&] { return EncodeBothTexts(); });
  if (!status.ok()) return status;
  const at::Tensor& prompt = inputs_->prompt_embeds;
  const at::Tensor& negative = inputs_->negative_prompt_embeds;
  if (caller_.taps.texts) caller_.taps.texts(prompt, negative);
  // Do not wait here: the first step waits anyway and then reads the verdict.
  finite_.Look(StageKind::kT5Encoding, "the embeddings of the prompt", prompt);
  if (negative.defined()) {
    finite_.Look(StageKind::kT5Encoding, "the embeddings of the negative prompt", negative);
  }
  return absl::OkStatus();
}

absl::Status VideoJob::EncodeBothTexts() {
  const WeightLease lease(model_.text_encoder_weights,
                          PolicyOf(plan_, ModelComponent::kTextEncoder), gate_.stop_token());
  TextEncoder& encoder = *model_.text_encoder;
  absl::StatusOr<at::Tensor> prompt = encoder.Encode(plan_.prepared->prompt.ids, gate_);
  if (!prompt.ok()) return prompt.status();
  inputs_->prompt_embeds = *std::move(prompt);
  if (!plan_.guided) return absl::OkStatus();
  absl::StatusOr<at::Tensor> negative = encoder.Encode(plan_.prepared->negative_prompt.ids, gate_);
  if (!negative.ok()) return negative.status();
  inputs_->negative_prompt_embeds = *std::move(negative);
  return absl::OkStatus();
}

absl::Status VideoJob::EncodeImage() {
  if (denoised() || !image_.defined()) return absl::OkStatus();
  EncodedImage encoded;
  absl::Status status = InStage(StageKind::kVaeEncoding, [&]() -> absl::Status {
    absl::StatusOr<EncodedImage> made = EncodedInput();
    if (!made.ok()) return made.status();
    encoded = *std::move(made);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (caller_.taps.image) caller_.taps.image(image_, encoded);
  image_.reset();
  inputs_->first_frame_latents = encoded.first_frame_latents;
  inputs_->condition = encoded.condition;
  const bool is_frame = encoded.first_frame_latents.defined();
  finite_.Look(StageKind::kVaeEncoding, "the latents of the image",
               is_frame ? encoded.first_frame_latents : encoded.condition);
  return absl::OkStatus();
}

absl::StatusOr<EncodedImage> VideoJob::EncodedInput() const {
  const WeightLease lease(model_.vae_weights, PolicyOf(plan_, ModelComponent::kVae),
                          gate_.stop_token());
  absl::StatusOr<EncodedImage> encoded =
      wan::EncodeImage(image_, model_.planned.family->image, plan_.shape.num_frames, *model_.vae,
                       MakeVaePass(gate_, plan_.request, &caller_.recorder));
  // The encoder may have run on another device.
  if (encoded.ok() && encoded->condition.defined()) {
    encoded->condition = encoded->condition.to(model_.device);
  }
  return encoded;
}

// Returns the noise with which the first step begins, or with which the request's latents are
// mixed.
at::Tensor VideoJob::Noise() const {
  const std::optional<StoredTensor>& given = plan_.prepared->initial_latents;
  if (given.has_value()) return ToLatents(*given, model_.device);
  return DrawNoise(plan_.latent_shape, *plan_.request.seed, model_.device);
}

// Returns the state in which the first remaining step begins.
DenoiseProgress VideoJob::Start() const {
  if (earlier_.has_value()) return earlier_->To(model_.device);
  DenoiseProgress progress;
  progress.latents = Noise();
  if (caller_.taps.noise) caller_.taps.noise(progress.latents);
  if (const std::optional<StoredTensor>& clean = plan_.prepared->latents; clean.has_value()) {
    progress.latents =
        MixNoise(ToLatents(*clean, model_.device), progress.latents, plan_.sigmas.front());
  }
  return progress;
}

absl::Status VideoJob::Denoise() {
  if (denoised()) return absl::OkStatus();
  PreviewSender previews(plan_, model_, caller_.observer, gate_);
  absl::StatusOr<at::Tensor> latents = RunDenoising(*inputs_, Start(),
                                                    {.experts = *experts_,
                                                     .recorder = caller_.recorder,
                                                     .gate = gate_,
                                                     .finite = finite_,
                                                     .observer = caller_.observer,
                                                     .savepoints = caller_.savepoints,
                                                     .on_step = [&](const DenoiseState& state) {
                                                       if (caller_.taps.step)
                                                         caller_.taps.step(state);
                                                       return previews.AfterStep(state);
                                                     }});
  inputs_.reset();
  experts_.reset();
  earlier_.reset();
  if (!latents.ok()) return latents.status();
  latents_ = *std::move(latents);
  return absl::OkStatus();
}

absl::Status VideoJob::Decode() {
  if (!plan_.decodes()) return absl::OkStatus();
  return DecodeVideo(latents_, {.plan = plan_,
                                .model = model_,
                                .recorder = caller_.recorder,
                                .gate = gate_,
                                .files = files_,
                                .on_frames = caller_.taps.frames});
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
  const Caller caller{outputs, recorder, observer, savepoints, taps};
  absl::StatusOr<std::optional<DenoiseProgress>> earlier = EarlierProgress(plan, caller);
  if (!earlier.ok()) return earlier.status();
  VideoJob job(plan, model, caller, *std::move(earlier), std::move(stop));
  absl::Status status = job.Preprocess();
  if (status.ok()) status = job.EncodeTexts();
  if (status.ok()) status = job.EncodeImage();
  if (status.ok()) status = job.Denoise();
  if (status.ok()) status = job.WriteLatents();
  if (status.ok()) status = job.Decode();
  return status;
}

}  // namespace wan
