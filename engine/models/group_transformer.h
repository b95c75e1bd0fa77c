// A transformer that computes on several devices at once. The denoising loop uses it like one that
// computes on one device.
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
  // Counts the rank's exchanges with the others; null: not counted.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// Makes the communicators of the ranks of `devices`, one rank per device.
using CommunicatorFactory =
    std::function<std::unique_ptr<CommunicatorGroup>(const std::vector<at::Device>& devices)>;

// Returns a transformer over `ranks`, which hold the same weights; it takes latents on any device
// and returns flows to that. It runs on the calling thread and on a thread for each further rank.
//
// A batch of two, the forwards with and without the prompt, is divided between the two halves of an
// even number of ranks: they exchange nothing while they compute, and the flows have the bits of
// two forwards of one video each. Within a half, and with a batch of one, the ranks divide the
// tokens and the heads among them (RankTransformer::ShareTokens); no more of them
// take part than there are tokens.
//
// If one rank throws or returns an error, the call ends on all: it returns that status, or the
// one of CatchTorchErrors on the rank's device, and no device computes for it any more. A stop is
// agreed upon. `make_communicators` is called for a half or the whole when that is needed first.
std::unique_ptr<VideoTransformer> MakeGroupTransformer(std::vector<GroupRank> ranks,
                                                       CommunicatorFactory make_communicators);

}  // namespace wan
