// A transformer that computes on several devices at once. To the denoising loop it looks like a
// transformer on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/api/exchange_meter.h"
#include "engine/group/communicator.h"
#include "engine/models/video_transformer.h"

namespace wan {

// One rank: a device with the model's weights on it.
struct GroupRank {
  at::Device device = at::kCPU;
  std::unique_ptr<RankTransformer> transformer;
  // Counts the rank's exchanges with other ranks; null: nobody counts them.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// Makes the communicators of one rank per device.
using CommunicatorFactory =
    std::function<std::unique_ptr<CommunicatorGroup>(const std::vector<at::Device>& devices)>;

// Returns a transformer over `ranks`, which must hold the same weights. The transformer takes
// latents on any device and returns the flow on that device. The calling thread serves the first
// rank; each other rank has a thread of its own.
//
// If the number of ranks is even, each half of the ranks computes one video of a batch of two (with
// and without the prompt). The halves exchange nothing while they compute, and the flows have the
// same bits as two forwards of one video each. Within a half, and with a batch of one, the ranks
// divide tokens and heads (RankTransformer::ShareTokens); at most one rank per token takes part.
//
// If one rank fails, the call ends on all ranks. The call then returns the failed rank's status
// (from CatchTorchErrors if LibTorch threw), after all devices have stopped computing. After a stop
// request either all ranks stop or none. The transformer calls `make_communicators` when a half, or
// the whole group, first needs communicators.
std::unique_ptr<VideoTransformer> MakeGroupTransformer(std::vector<GroupRank> ranks,
                                                       CommunicatorFactory make_communicators);

}  // namespace wan
