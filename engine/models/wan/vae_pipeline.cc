#include "engine/models/wan/vae_pipeline.h"

#include <c10/core/DeviceGuard.h>

#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/device_wait.h"
#include "engine/device/torch_errors.h"
#include "engine/group/handover.h"
#include "engine/group/rank_threads.h"

namespace wan {
namespace {

// Hands the decoder's state from one rank to the next.
using Channel = Handover<DecoderState>;

DecoderState MovedTo(const DecoderState& state, at::Device device) {
  // Call MovedTo on the thread of the device that has the state; if the receiving thread queued the
  // copy, it would wait for the next chunk.
  return {
      state.x.to(device, /*non_blocking=*/true),
      state.shortcut.defined() ? state.shortcut.to(device, /*non_blocking=*/true) : at::Tensor()};
}

void CountSent(const VaePipelineRank& rank, const DecoderState& state) {
  if (rank.exchanges == nullptr) return;
  size_t bytes = state.x.nbytes();
  if (state.shortcut.defined()) bytes += state.shortcut.nbytes();
  rank.exchanges->CountSent(bytes);
}

}  // namespace

absl::Status RunVaePipeline(const std::vector<VaePipelineRank>& ranks, const VaePipelineWork& work,
                            const WorkGate& gate) {
  const size_t parts = ranks.size();
  std::vector<Channel> channels(parts);  // channels[i] leads to part i of the decoder; channels[0]
                                         // is unused
  std::stop_source stop;
  const std::stop_callback on_stop(gate.stop_token(), [&] {
    stop.request_stop();
    for (Channel& channel : channels) channel.Close();
  });
  const auto close = [&](const absl::Status&) {
    stop.request_stop();
    for (Channel& channel : channels) channel.Close();
  };
  const auto stopped = [&] {
    return gate.RequestedStop() ? absl::CancelledError("video decoding was stopped on request")
                                : absl::OkStatus();
  };
  const auto decode = [&](size_t rank) -> absl::Status {
    const size_t part = parts - 1 - rank;
    const VaeDecoder decoder = ranks[rank].make_decoder();
    const std::vector<size_t> firsts = decoder.Divide(parts);
    const size_t end = part + 1 < parts ? firsts[part + 1] : decoder.steps();
    const WorkGate own = rank == 0 ? gate : WorkGate(ranks[rank].device, stop.get_token());
    FeatureCache cache = decoder.NewCache();
    for (int64_t chunk = 0; chunk < work.chunks; ++chunk) {
      DecoderState state;
      if (part == 0) {
        if (stop.stop_requested()) return stopped();
        state = VaeDecoder::Begin(work.latents(chunk));
      } else {
        DeviceWait wait(ranks[rank].device, ranks[rank].exchanges);
        std::optional<DecoderState> before = channels[part].Take();
        if (!before.has_value()) return stopped();
        wait.End();
        state = *std::move(before);
      }
      if (absl::Status status = decoder.Run(firsts[part], end, state, cache, own); !status.ok()) {
        return status;
      }
      VaeDecoder::NextChunk(cache);
      if (rank > 0) {
        CountSent(ranks[rank], state);
        if (!channels[part + 1].Put(MovedTo(state, ranks[rank - 1].device))) return stopped();
        continue;
      }
      absl::StatusOr<bool> go_on = work.frames(chunk, decoder.End(std::move(state)));
      if (!go_on.ok()) return go_on.status();
      if (*go_on) continue;
      close(absl::OkStatus());
      break;
    }
    return absl::OkStatus();
  };
  RankThreads threads(static_cast<int>(parts));
  absl::Status status = threads.Run(
      [&](int rank) {
        const at::Device device = ranks[static_cast<size_t>(rank)].device;
        const c10::DeviceGuard on_device(device);
        return CatchTorchErrors(absl::StrCat("decoding on ", device.str()),
                                [&] { return decode(static_cast<size_t>(rank)); });
      },
      close);
  if (status.ok()) return status;
  for (const VaePipelineRank& rank : ranks) AwaitDevice(rank.device);
  return status;
}

}  // namespace wan
