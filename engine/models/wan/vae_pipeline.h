// Decodes one video on several devices: each has some of the decoder's layers, and works on a chunk
// while the next device works on the chunk before. No layer sees other tensors than on one device,
// so the frames have the same bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"
#include "engine/device/work_gate.h"
#include "engine/models/wan/vae_decoder.h"

namespace wan {

struct VaePipelineRank {
  at::Device device = at::kCPU;
  // Makes the decoder; called once, on the thread that computes on `device`.
  std::function<VaeDecoder()> make_decoder;
  // Counts the device's exchanges with the others; null: not counted.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// The input and output of a decoding.
struct VaePipelineWork {
  int64_t chunks = 0;
  // Returns the latents of a chunk on the device of the last rank. Called on its thread.
  std::function<at::Tensor(int64_t chunk)> latents;
  // Gets a chunk's frames, as VaeDecoder::DecodeChunk returns them, on the device and the thread of
  // the first rank, which is the caller's. False ends the decoding.
  std::function<absl::StatusOr<bool>(int64_t chunk, at::Tensor frames)> frames;
};

// Decodes all chunks. The calling thread computes with the first rank, which has the last layers;
// the second rank has those before them, and so on. Returns the error of a rank, from
// CatchTorchErrors; no device computes any more then. CANCELLED after a stop request, for which all
// ranks check `gate`'s token.
absl::Status RunVaePipeline(const std::vector<VaePipelineRank>& ranks, const VaePipelineWork& work,
                            const WorkGate& gate);

}  // namespace wan
