// One rank's part of a forward that several ranks compute together: it has some of the tokens and,
// for the self-attention, all tokens of some of the heads (DeepSpeed-Ulysses, arXiv 2309.14509).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/group/communicator.h"
#include "engine/group/share.h"

namespace wan {

// Used by one forward. Rows of a batch are all tokens of its first entry, then those of the next.
class SharedTokens {
 public:
  // Null: this rank computes everything, and the functions return what they are given.
  SharedTokens(Communicator* peers, int64_t tokens, int64_t heads);

  bool IsAlone() const { return peers_ == nullptr; }
  int64_t ranks() const { return static_cast<int64_t>(tokens_.size()); }

  // The number of this rank's tokens, of one entry of the batch.
  int64_t tokens() const { return OwnTokens().count; }

  // [batch * all tokens, ...] -> [batch * own tokens, ...].
  at::Tensor OwnRows(const at::Tensor& rows, int64_t batch) const;

  // Gives each rank its heads of all tokens:
  // [batch, own tokens, parts, heads, head_dim] -> [batch, tokens, parts, own heads, head_dim].
  // Returns what the ranks agree to end with.
  absl::StatusOr<at::Tensor> ToHeads(const at::Tensor& packed) const;
  // The way back: [batch, tokens, own heads, head_dim] -> [batch, own tokens, heads, head_dim].
  absl::StatusOr<at::Tensor> ToTokens(const at::Tensor& mixed) const;

  // Gives each rank the rows of all: [batch * own tokens, columns] -> [batch * tokens, columns].
  absl::StatusOr<at::Tensor> AllRows(const at::Tensor& rows, int64_t batch) const;

 private:
  const Share& OwnTokens() const { return tokens_[rank_]; }
  const Share& OwnHeads() const { return heads_[rank_]; }
  absl::Status Exchange(const std::vector<at::Tensor>& send,
                        const std::vector<at::Tensor>& receive) const;

  Communicator* const peers_;
  const size_t rank_;
  const std::vector<Share> tokens_;  // of each rank
  const std::vector<Share> heads_;
};

}  // namespace wan
