// Decodes one video on several devices. Each device has some of the decoder's layers and works on
// one chunk while the next device works on the previous chunk. Each layer sees the same tensors as
// on one device, so the frames have the same bits.
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
  // Makes the decoder. RunVaePipeline calls it once, on the thread of `device`.
  std::function<VaeDecoder()> make_decoder;
  // Counts the device's exchanges with other devices; null: nobody counts them.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// The source and destination of one decoding.
struct VaePipelineWork {
  int64_t chunks = 0;
  // Returns a chunk's latents on the last rank's device. RunVaePipeline calls `latents` on the last
  // rank's thread.
  std::function<at::Tensor(int64_t chunk)> latents;
  // Receives a chunk's frames as VaeDecoder::DecodeChunk returns them, on the first rank's device.
  // RunVaePipeline calls `frames` on the caller's thread. If the function returns false, decoding
  // ends.
  std::function<absl::StatusOr<bool>(int64_t chunk, at::Tensor frames)> frames;
};

// Decodes all chunks. The calling thread serves the first rank, which has the last layers. The
// second rank has the layers before the first rank's layers, and so on. After an error, returns the
// error of one rank (from CatchTorchErrors) once no device is computing any more. CANCELLED after a
// stop request on `gate`, whose token all ranks check.
absl::Status RunVaePipeline(const std::vector<VaePipelineRank>& ranks, const VaePipelineWork& work,
                            const WorkGate& gate);

}  // namespace wan
