// The diffusion transformer of all Wan2.2 models: upstream's WanModel (wan/modules/model.py).
// docs/design/transformer.md describes how a block is computed and in which dtypes.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/costs/wan/shared_tokens_cost.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/device/device_graph.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct TransformerOptions {
  at::Device device = at::kCPU;
  // fp32 or bf16. This is the dtype of three things: the weights and products of the blocks, those
  // of the text projection, and the attention's inputs. The residual stream, norms, modulation,
  // time and patch embedding and the head are always fp32.
  at::ScalarType dtype = at::kFloat;
  // Receives ownership of the weights, so that their memory can be moved between host and device;
  // null: the weights stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // The largest self-attention that runs as one kernel. A larger self-attention runs as several
  // kernels, and the gate is passed between them. Unset: the default for the kind of device.
  std::optional<AttentionLimits> attention_limits = {};
  // From this many tokens on, ranks that share a forward exchange heads while the attention of
  // other heads runs.
  int64_t fewest_overlapped_tokens = kFewestOverlappedTokens;
  // Records forwards of small videos, whose kernels take less time than their launches; null:
  // forwards are not recorded.
  std::shared_ptr<DeviceGraphRecorder> graphs = nullptr;
  // Keeps the matrices that forwards multiply with in 8 bits: as the file has them, or rounded from
  // `dtype` (WeightLoader::GetRounded). Blocks with 8-bit weights must compute with 8 bits in every
  // forward (ForwardPolicy). If the matrices were rounded, the results have the same bits as with
  // matrices that are kept in `dtype`.
  bool eight_bit_weights = false;
  // The indices, in rising order, of the blocks whose matrices stay in `dtype` even with
  // eight_bit_weights.
  std::vector<int> exact_blocks = {};
};

// Copies the weights to options.device; `weights` is not needed afterwards. Returns the loader's
// status if a tensor is missing or has another shape; INVALID_ARGUMENT if the dtype is neither fp32
// nor bf16; UNIMPLEMENTED if the config lacks the norms of queries and keys or the norm before the
// cross-attention.
absl::StatusOr<std::unique_ptr<RankTransformer>> LoadWanTransformer(
    const WeightSource& weights, const TransformerConfig& config,
    const TransformerOptions& options);

}  // namespace wan
