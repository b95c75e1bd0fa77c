#include "engine/pipeline/video_files.h"

#include <cstddef>
#include <functional>
#include <utility>

#include "engine/formats/safetensors_writer.h"

namespace wan {
namespace {

// Writes an optional file. If that fails, the job goes on without it.
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

  std::unique_ptr<VideoWriter> writer_;  // null after a failed write
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
    const std::string& h264_preset) {
  const H264Options h264{.preset = h264_preset, .crf = *plan_.request.h264_crf};
  std::vector<std::unique_ptr<VideoWriter>> writers;
  for (const OutputFile& output : outputs_) {
    if (output.kind == OutputKind::kLatents || lost_.contains(&output)) continue;
    VideoFormat format{plan_.shape.width, plan_.shape.height, *plan_.request.fps, h264,
                       plan_.shape.num_frames};
    if (plan_.request.progressive) {
      format.on_part = [this](const VideoPart& part) { observer_.OnVideoPart(part); };
    }
    absl::StatusOr<std::unique_ptr<VideoWriter>> writer =
        OpenVideoWriter(output.kind, output.path, format);
    if (!writer.ok()) {
      if (absl::Status status = GoOnWithout(output, writer.status()); !status.ok()) return status;
    } else if (IsOptional(output)) {
      writers.push_back(std::make_unique<OptionalWriter>(
          *std::move(writer), [this, &output](const absl::Status& status) {
            GoOnWithout(output, status).IgnoreError();  // the output is optional
          }));
    } else {
      writers.push_back(*std::move(writer));
    }
  }
  return writers;
}

}  // namespace wan
