#include "engine/pipeline/preview_sender.h"

#include <ATen/TensorOperators.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/device/torch_errors.h"
#include "engine/media/image_encode.h"
#include "engine/pipeline/finite_watch.h"
#include "engine/pipeline/tiled_decode.h"
#include "engine/pipeline/vae_pass.h"
#include "engine/planning/planned_model.h"
#include "engine/weights/weight_lease.h"

namespace wan {

absl::Status PreviewSender::AfterStep(const DenoiseState& state) {
  const int interval = plan_.request.preview_interval;
  if (interval == 0 || failed_ || state.step % interval != 0) return absl::OkStatus();
  absl::Status status = CatchTorchErrors("making a preview", [&] { return Send(state); });
  if (status.ok()) return status;
  if (gate_.RequestedStop()) return gate_.Pass();
  if (IsDeviceLost(status)) return status;
  if (IsNotFinite(status)) {
    // Decoding the video would fail in the same way, with the same autoencoder, so fail now.
    return NotFiniteIn(
        plan_, StageKind::kVaeDecoding,
        absl::StrCat("for the preview after step ", state.step, ", ", status.message()));
  }
  failed_ = true;
  if (IsOutOfMemory(status)) ReleaseCachedMemory(model_.device);
  observer_.OnOmission({std::nullopt, status});
  return absl::OkStatus();
}

absl::Status PreviewSender::Send(const DenoiseState& state) {
  const WeightLease lease(model_.vae_weights, PolicyOf(plan_, ModelComponent::kVae),
                          gate_.stop_token());
  Preview preview{state.step, {}};
  const int64_t last = state.input.size(1) - 1;
  for (const int64_t latent : std::set<int64_t>{0, (last + 1) / 2, last}) {
    const at::Tensor clean =
        (state.input.narrow(1, latent, 1) - state.flow.narrow(1, latent, 1) * state.sigma)
            .contiguous();
    absl::Status status = DecodeTiled(
        *model_.vae, clean, plan_.decode_tiles,
        [this](const at::Tensor& frames) { return download_.Add(frames); },
        MakeVaePass(gate_, plan_.request, /*recorder=*/nullptr));
    if (status.ok()) status = download_.Finish();
    if (!status.ok()) return status;
    absl::StatusOr<std::string> jpeg = EncodeJpeg(picture_, plan_.shape.width, plan_.shape.height);
    if (!jpeg.ok()) return jpeg.status();
    preview.jpegs.push_back(*std::move(jpeg));
  }
  observer_.OnPreview(preview);
  return absl::OkStatus();
}

}  // namespace wan
