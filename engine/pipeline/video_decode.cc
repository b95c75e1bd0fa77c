#include "engine/pipeline/video_decode.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/torch_errors.h"
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

// Decodes into `download`; the weights are on the device meanwhile.
absl::Status DecodeInto(FrameDownload& download, const at::Tensor& latents, const TileGrid& tiles,
                        const VideoDecode& decode) {
  const WeightLease lease(decode.model.vae_weights, PolicyOf(decode.plan, ModelComponent::kVae),
                          decode.gate.stop_token());
  absl::Status status = DecodeTiled(
      *decode.model.vae, latents, tiles,
      [&](const at::Tensor& frames) {
        if (decode.on_frames) decode.on_frames(frames);
        return download.Add(frames);
      },
      MakeVaePass(decode.gate, decode.plan.request, &decode.recorder));
  if (IsNotFinite(status)) {
    return NotFiniteIn(decode.plan, StageKind::kVaeDecoding, std::string(status.message()));
  }
  return status.ok() ? download.Finish() : status;
}

// Decodes once and writes all files from the first frame to the last.
absl::Status DecodeOnce(const at::Tensor& latents, const TileGrid& tiles,
                        const VideoDecode& decode) {
  if (decode.gate.RequestedStop()) return decode.gate.Pass();
  const PipelineModel& model = decode.model;
  absl::StatusOr<std::vector<std::unique_ptr<VideoWriter>>> writers =
      decode.files.OpenWriters(model.planned.options.h264.preset);
  if (!writers.ok()) return writers.status();
  FrameEncoder encoder(*std::move(writers), decode.plan.queued_frames, decode.recorder);
  // After a stop request, a decoder that waits for a full encoder queue must be woken.
  const std::stop_callback on_stop(decode.gate.stop_token(), [&encoder] { encoder.Abandon(); });
  Span span = decode.recorder.StartSpan(StageKind::kVaeDecoding);
  absl::Status status = span.Finish(CatchTorchErrors("decoding the video", [&] {
    FrameDownload download(
        model.device, model.vae->config().stride_temporal,
        [&encoder](std::vector<uint8_t> rgb24) { return encoder.Push(std::move(rgb24)); });
    return DecodeInto(download, latents, tiles, decode);
  }));
  return status.ok() ? encoder.Finish() : status;
}

}  // namespace

absl::Status DecodeVideo(const at::Tensor& latents, const VideoDecode& decode) {
  const TileGrid& planned = decode.plan.decode_tiles;
  std::vector<TileGrid> grids = TileGrids({latents.size(1), latents.size(2), latents.size(3)});
  const auto found = std::find(grids.begin(), grids.end(), planned);
  if (found != grids.end()) grids.erase(grids.begin(), found + 1);
  grids.insert(grids.begin(), planned);
  absl::Status status;
  for (const TileGrid& tiles : grids) {
    status = DecodeOnce(latents, tiles, decode);
    if (!IsOutOfMemory(status)) break;
    ReleaseCachedMemory(decode.model.device);
  }
  return status;
}

}  // namespace wan
