#include "engine/pipeline/video_files.h"

#include <algorithm>
#include <cstddef>
#include <stop_token>
#include <utility>

#include "engine/device/torch_errors.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/pipeline/finite_watch.h"
#include "engine/pipeline/frame_download.h"
#include "engine/pipeline/frame_encoder.h"
#include "engine/pipeline/tiled_decode.h"
#include "engine/pipeline/vae_pass.h"
#include "engine/planning/planned_model.h"
#include "engine/planning/tile_geometry.h"
#include "engine/weights/weight_lease.h"

namespace wan {
namespace {

// An optional file, without which the job goes on if it fails.
class OptionalWriter final : public VideoWriter {
 public:
  OptionalWriter(std::unique_ptr<VideoWriter> writer,
                 std::function<void(const absl::Status&)> on_failure)
      : writer_(std::move(writer)), on_failure_(std::move(on_failure)) {}

  absl::Status Write(std::span<const uint8_t> rgb24) override {
    return writer_ == nullptr ? absl::OkStatus() : Accept(writer_->Write(rgb24));
  }

  absl::Status Finish() override {
    return writer_ == nullptr ? absl::OkStatus() : Accept(writer_->Finish());
  }

 private:
  absl::Status Accept(const absl::Status& status) {
    if (status.ok()) return status;
    writer_ = nullptr;
    on_failure_(status);
    return absl::OkStatus();
  }

  std::unique_ptr<VideoWriter> writer_;  // null after a failure
  const std::function<void(const absl::Status&)> on_failure_;
};

}  // namespace

absl::Status VideoFiles::GoOnWithout(const OutputFile& output, const absl::Status& status) {
  if (!IsOptional(output)) return status;
  lost_.insert(&output);
  observer_.OnOmission({output.kind, status});
  return absl::OkStatus();
}

absl::Status VideoFiles::WriteLatents(const at::Tensor& latents) {
  for (const OutputFile& output : outputs_) {
    if (output.kind != OutputKind::kLatents) continue;
    const at::Tensor host = latents.to(at::kCPU, at::kFloat).contiguous();
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(host.const_data_ptr()),
                                           host.nbytes());
    absl::Status status =
        WriteSafetensors(output.path, {{"latents", "F32", host.sizes().vec(), bytes}});
    if (!status.ok()) status = GoOnWithout(output, status);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> VideoFiles::OpenWriters(
    const H264Options& h264) {
  const H264Options options{h264.preset, plan_.request.h264_crf.value_or(h264.crf)};
  std::vector<std::unique_ptr<VideoWriter>> writers;
  for (const OutputFile& output : outputs_) {
    if (output.kind == OutputKind::kLatents || lost_.contains(&output)) continue;
    absl::StatusOr<std::unique_ptr<VideoWriter>> writer =
        OpenVideoWriter(output.kind, output.path,
                        {plan_.shape.width, plan_.shape.height, *plan_.request.fps, options,
                         plan_.shape.num_frames});
    if (!writer.ok()) {
      if (absl::Status status = GoOnWithout(output, writer.status()); !status.ok()) return status;
    } else if (IsOptional(output)) {
      writers.push_back(std::make_unique<OptionalWriter>(
          *std::move(writer), [this, &output](const absl::Status& status) {
            GoOnWithout(output, status).IgnoreError();  // it is optional
          }));
    } else {
      writers.push_back(*std::move(writer));
    }
  }
  return writers;
}

absl::Status VideoFiles::WriteFramesOnce(const at::Tensor& latents, const TileGrid& tiles,
                                         const PipelineModel& model, Recorder& recorder,
                                         const WorkGate& gate,
                                         const std::function<void(const at::Tensor&)>& on_frames) {
  if (gate.RequestedStop()) return gate.Pass();
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> writers = OpenWriters(model.h264);
  if (!writers.ok()) return writers.status();
  FrameEncoder encoder(*std::move(writers), plan_.queued_frames, recorder);
  // The encoder may be the slower of the two, and the decoder waits for it once the queue is full.
  const std::stop_callback on_stop(gate.stop_token(), [&encoder] { encoder.Abandon(); });
  Span span = recorder.StartSpan(StageKind::kVaeDecoding);
  absl::Status status = span.Finish(CatchTorchErrors("decoding the video", [&] {
    FrameDownload download(
        model.device, model.vae->config().stride_temporal,
        [&encoder](std::vector<uint8_t> rgb24) { return encoder.Push(std::move(rgb24)); });
    const WeightLease lease(model.vae_weights, PolicyOf(plan_, ModelComponent::kVae),
                            gate.stop_token());
    absl::Status decoded = DecodeTiled(
        *model.vae, latents, tiles,
        [&](const at::Tensor& frames) {
          if (on_frames) on_frames(frames);
          return download.Add(frames);
        },
        MakeVaePass(gate, plan_.request, recorder));
    if (IsNotFinite(decoded))
      return NotFiniteIn(plan_, StageKind::kVaeDecoding, std::string(decoded.message()));
    return decoded.ok() ? download.Finish() : decoded;
  }));
  return status.ok() ? encoder.Finish() : status;
}

absl::Status VideoFiles::WriteFrames(const at::Tensor& latents, const PipelineModel& model,
                                     Recorder& recorder, const WorkGate& gate,
                                     const std::function<void(const at::Tensor&)>& on_frames) {
  std::vector<TileGrid> grids = TileGrids({latents.size(1), latents.size(2), latents.size(3)});
  const auto planned = std::find(grids.begin(), grids.end(), plan_.decode_tiles);
  if (planned != grids.end()) grids.erase(grids.begin(), planned + 1);
  grids.insert(grids.begin(), plan_.decode_tiles);
  absl::Status status;
  for (const TileGrid& tiles : grids) {
    status = WriteFramesOnce(latents, tiles, model, recorder, gate, on_frames);
    if (!IsOutOfMemory(status)) break;
    ReleaseCachedMemory(model.device);
  }
  return status;
}

}  // namespace wan
