// The texts of one batch as the transformer keeps them for a job.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/models/video_transformer.h"
#include "engine/models/wan/patches.h"

namespace wan {

// Tables that depend on a video's tokens but not on the step. The job's texts own these tables,
// which are freed with the texts.
struct TokenTables {
  TokenGrid grid{};
  at::Tensor rotary;
  std::vector<int32_t> index_rows;
  at::Tensor index;
};

class WanTextConditioning final : public TextConditioning {
 public:
  WanTextConditioning(const VideoTransformer* owner, int64_t batch,
                      std::shared_ptr<TokenTables> tables)
      : owner_(owner), id_(NextId()), batch_(batch), tables_(std::move(tables)) {}

  int64_t batch() const override { return batch_; }

  int64_t Bytes() const override {
    return static_cast<int64_t>(layers.nbytes()) +
           (change.defined() ? static_cast<int64_t>(change.nbytes()) : 0);
  }

  std::optional<double> ChangeRatio() const override;

  const VideoTransformer* owner() const { return owner_; }
  // Unique among all prepared texts.
  uint64_t id() const { return id_; }
  TokenTables& tables() const { return *tables_; }

  // Keys and values of all blocks: [blocks, B, text_len, 2, heads, head_dim].
  at::Tensor layers;
  // The sum of the blocks' contributions to the residual stream in the last forward that kept it:
  // fp32 [rows, dim]. Only one forward at a time changes this tensor.
  mutable at::Tensor change;

 private:
  static uint64_t NextId();

  const VideoTransformer* const owner_;
  const uint64_t id_;
  const int64_t batch_;
  const std::shared_ptr<TokenTables> tables_;
  // The L2 norm of each row of `change` at the last ChangeRatio.
  mutable at::Tensor norms_;
};

}  // namespace wan
