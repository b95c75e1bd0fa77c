#include "engine/pipeline/video_pipeline.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/recorder.h"
#include "engine/device/torch_errors.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/media/image_encode.h"
#include "engine/pipeline/expert_switch.h"
#include "engine/pipeline/frame_encoder.h"
#include "engine/pipeline/preprocess.h"
#include "engine/pipeline/tiled_decode.h"
#include "engine/planning/planned_model.h"
#include "engine/planning/tile_geometry.h"
#include "engine/weights/weight_lease.h"

namespace wan {
namespace {

struct PreparedInputs {
  PromptTokens prompt;
  PromptTokens negative_prompt;  // none if the plan is not guided
  at::Tensor image;              // [3, 1, H, W]; undefined for text to video
};

struct TextEmbeddings {
  at::Tensor prompt;
  at::Tensor negative_prompt;  // undefined if the plan is not guided
};

absl::StatusOr<PreparedInputs> Preprocess(const GenerationPlan& plan, const PipelineModel& model) {
  PreparedInputs inputs;
  const int64_t limit = model.planned.transformer.text_len;
  absl::StatusOr<PromptTokens> prompt =
      TokenizePrompt(model.tokenizer.get(), plan.request.prompt, limit);
  if (!prompt.ok()) return prompt.status();
  inputs.prompt = *std::move(prompt);
  if (plan.guided) {
    absl::StatusOr<PromptTokens> negative =
        TokenizePrompt(model.tokenizer.get(), *plan.request.negative_prompt, limit);
    if (!negative.ok()) return negative.status();
    inputs.negative_prompt = *std::move(negative);
  }
  if (plan.image_to_video) {
    absl::StatusOr<at::Tensor> image =
        PrepareImage(*plan.request.image, model.planned.family->image, plan.shape);
    if (!image.ok()) return image.status();
    inputs.image = *std::move(image);
  }
  return inputs;
}

absl::StatusOr<TextEmbeddings> EncodeTexts(const PreparedInputs& inputs, TextEncoder& encoder) {
  absl::StatusOr<at::Tensor> prompt = encoder.Encode(inputs.prompt.ids);
  if (!prompt.ok()) return prompt.status();
  if (inputs.negative_prompt.ids.empty()) return TextEmbeddings{*prompt, {}};
  absl::StatusOr<at::Tensor> negative = encoder.Encode(inputs.negative_prompt.ids);
  if (!negative.ok()) return negative.status();
  return TextEmbeddings{*prompt, *negative};
}

FlowSchedule ScheduleOf(const GenerationPlan& plan) {
  FlowSchedule schedule{plan.sigmas, {}};
  for (const StepPlan& step : plan.steps) schedule.timesteps.push_back(step.timestep);
  return schedule;
}

WeightLease LeaseVae(const GenerationPlan& plan, const PipelineModel& model) {
  return WeightLease(model.vae_weights, PolicyOf(plan, ModelComponent::kVae));
}

// Runs `work` inside the span `stage` and closes it with its status.
template <typename Work>
auto InStage(Recorder& recorder, std::string_view stage, Work work) -> decltype(work()) {
  Span span = recorder.StartSpan(stage);
  auto result = work();
  span.Finish(result.status()).IgnoreError();
  return result;
}

// Upstream's rule for 8 bits: (x + 1) / 2 * 255, the fraction cut off (never rounded).
std::vector<std::vector<uint8_t>> ToRgb24(const at::Tensor& frames) {
  const at::Tensor bytes = frames.clamp(-1, 1)
                               .add(1)
                               .div_(2)
                               .mul_(255)
                               .to(at::kByte)
                               .permute({1, 2, 3, 0})
                               .contiguous()
                               .cpu();
  const size_t size = static_cast<size_t>(bytes.numel() / bytes.size(0));
  const uint8_t* data = bytes.const_data_ptr<uint8_t>();
  std::vector<std::vector<uint8_t>> result;
  for (int64_t i = 0; i < bytes.size(0); ++i, data += size) result.emplace_back(data, data + size);
  return result;
}

absl::Status WriteLatents(const std::string& path, const at::Tensor& latents) {
  const at::Tensor host = latents.to(at::kCPU, at::kFloat).contiguous();
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(host.const_data_ptr()),
                                         host.nbytes());
  return WriteSafetensors(path, {{"latents", "F32", host.sizes().vec(), bytes}});
}

// Decodes the first latent frame of the clean latents that this step's flow points to.
absl::Status SendPreview(const DenoiseState& state, const GenerationPlan& plan,
                         const PipelineModel& model, GenerationObserver& observer,
                         std::stop_token stop) {
  const WeightLease lease = LeaseVae(plan, model);
  const at::Tensor clean =
      (state.input.narrow(1, 0, 1) - state.flow.narrow(1, 0, 1) * state.sigma).contiguous();
  return DecodeTiled(
      *model.vae, clean, plan.decode_tiles,
      [&](const at::Tensor& frames) -> absl::Status {
        absl::StatusOr<std::string> jpeg =
            EncodeJpeg(ToRgb24(frames).front(), plan.shape.width, plan.shape.height);
        if (!jpeg.ok()) return jpeg.status();
        observer.OnPreview({state.step, *std::move(jpeg)});
        return absl::OkStatus();
      },
      stop);
}

// Opens a writer for every output that holds frames.
absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> OpenWriters(
    std::span<const OutputFile> outputs, const GenerationPlan& plan) {
  std::vector<std::unique_ptr<VideoWriter>> writers;
  for (const OutputFile& output : outputs) {
    if (output.kind == OutputKind::kLatents) continue;
    absl::StatusOr<std::unique_ptr<VideoWriter>> writer = OpenVideoWriter(
        output.kind, output.path, {plan.shape.width, plan.shape.height, *plan.request.fps});
    if (!writer.ok()) return writer.status();
    writers.push_back(*std::move(writer));
  }
  return writers;
}

// One attempt, which memory may end.
absl::Status DecodeToFiles(const GenerationPlan& plan, const PipelineModel& model,
                           const at::Tensor& latents, const TileGrid& tiles,
                           std::span<const OutputFile> outputs, Recorder& recorder,
                           std::stop_token stop, const PipelineTaps& taps) {
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> writers = OpenWriters(outputs, plan);
  if (!writers.ok()) return writers.status();
  FrameEncoder encoder(*std::move(writers), recorder);
  // The encoder may be the slower of the two, and the decoder waits for it.
  const std::stop_callback on_stop(stop, [&encoder] { encoder.Abandon(); });
  const auto push = [&](const at::Tensor& frames) -> absl::Status {
    if (taps.frames) taps.frames(frames);
    for (std::vector<uint8_t>& frame : ToRgb24(frames)) {
      if (absl::Status pushed = encoder.Push(std::move(frame)); !pushed.ok()) return pushed;
    }
    return absl::OkStatus();
  };
  Span span = recorder.StartSpan(kStageVaeDecoding);
  absl::Status status = span.Finish(CatchTorchErrors("decoding the video", [&] {
    const WeightLease lease = LeaseVae(plan, model);
    return DecodeTiled(*model.vae, latents, tiles, push, stop);
  }));
  if (!status.ok()) return status;
  return encoder.Finish();
}

// The steps are done and must not be lost: where memory ends, the same latents are decoded again in
// tiles, from the first frame on.
absl::Status DecodeToFiles(const GenerationPlan& plan, const PipelineModel& model,
                           const at::Tensor& latents, std::span<const OutputFile> outputs,
                           Recorder& recorder, std::stop_token stop, const PipelineTaps& taps) {
  std::vector<TileGrid> grids = TileGrids({latents.size(1), latents.size(2), latents.size(3)});
  const auto planned = std::find(grids.begin(), grids.end(), plan.decode_tiles);
  if (planned != grids.end()) grids.erase(grids.begin(), planned + 1);
  grids.insert(grids.begin(), plan.decode_tiles);
  absl::Status status;
  for (const TileGrid& tiles : grids) {
    status = DecodeToFiles(plan, model, latents, tiles, outputs, recorder, stop, taps);
    if (!IsOutOfMemory(status)) return status;
    ReleaseCachedMemory(model.device);
  }
  return status;
}

}  // namespace

absl::Status RunVideoPipeline(const GenerationPlan& plan, const PipelineModel& model,
                              std::span<const OutputFile> outputs, Recorder& recorder,
                              GenerationObserver& observer, std::stop_token stop,
                              const PipelineTaps& taps) {
  ExpertSwitch experts(plan, model, recorder);
  const auto prepared = InStage(recorder, PreprocessStage(model.planned.family->id),
                                [&] { return Preprocess(plan, model); });
  if (!prepared.ok()) return prepared.status();
  if (stop.stop_requested()) return absl::CancelledError("stopped before the text encoder");

  const auto texts = InStage(recorder, kStageT5Encoding, [&] {
    const WeightLease lease(model.text_encoder_weights,
                            PolicyOf(plan, ModelComponent::kTextEncoder));
    return EncodeTexts(*prepared, *model.text_encoder);
  });
  if (!texts.ok()) return texts.status();
  if (taps.texts) taps.texts(texts->prompt, texts->negative_prompt);

  EncodedImage image;
  if (plan.image_to_video) {
    auto encoded = InStage(recorder, kStageVaeEncoding, [&] {
      const WeightLease lease = LeaseVae(plan, model);
      return EncodeImage(prepared->image, model.planned.family->image, plan.shape.num_frames,
                         *model.vae, stop);
    });
    if (!encoded.ok()) return encoded.status();
    image = *std::move(encoded);
    if (taps.image) taps.image(prepared->image, image);
  }

  const at::Tensor noise = DrawNoise(plan.latent_shape, *plan.request.seed, model.device);
  if (taps.noise) taps.noise(noise);
  absl::StatusOr<std::unique_ptr<FlowSolver>> solver =
      MakeFlowSolver(plan.request.solver, ScheduleOf(plan));
  if (!solver.ok()) return solver.status();
  // The image may have been encoded elsewhere.
  if (image.condition.defined()) image.condition = image.condition.to(model.device);
  const DenoiseInputs inputs{
      plan,           noise, texts->prompt, texts->negative_prompt, image.first_frame_latents,
      image.condition};
  const int interval = plan.request.preview_interval;
  const absl::StatusOr<at::Tensor> latents = DenoiseLoop(
      inputs, [&](const StepPlan& step) { return experts.Take(step); }, **solver, recorder, stop,
      [&](const DenoiseState& state) -> absl::Status {
        if (taps.step) taps.step(state);
        if (interval == 0 || state.step % interval != 0) return absl::OkStatus();
        return SendPreview(state, plan, model, observer, stop);
      });
  experts.Finish();
  if (!latents.ok()) return latents.status();

  for (const OutputFile& output : outputs) {
    if (output.kind != OutputKind::kLatents) continue;
    if (absl::Status status = WriteLatents(output.path, *latents); !status.ok()) return status;
  }
  if (!plan.decodes()) return absl::OkStatus();
  return DecodeToFiles(plan, model, *latents, outputs, recorder, stop, taps);
}

}  // namespace wan
