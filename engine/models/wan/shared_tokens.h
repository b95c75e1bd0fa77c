// One rank's part of a shared forward: some of the tokens and, for self-attention, all tokens of
// some heads (DeepSpeed-Ulysses, arXiv 2309.14509).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/costs/share.h"
#include "engine/group/communicator.h"

namespace wan {

// An object serves one forward. The rows of a tensor are all tokens of the first batch entry, then
// all tokens of the next entry, and so on.
class SharedTokens {
 public:
  // Computes the attention of some heads, whose queries, keys and values lie side by side in
  // `packed`.
  using HeadsAttention = absl::FunctionRef<absl::StatusOr<at::Tensor>(const at::Tensor& packed)>;

  // If `peers` is null, this rank computes everything. If there are at least `fewest_overlapped`
  // tokens, some heads are exchanged while the attention of others runs
  // (engine/costs/wan/shared_tokens_cost.h).
  SharedTokens(Communicator* peers, int64_t tokens, int64_t heads, int64_t fewest_overlapped);

  bool IsAlone() const { return peers_ == nullptr; }
  int64_t ranks() const { return static_cast<int64_t>(tokens_.size()); }

  // The number of this rank's tokens per batch entry.
  int64_t tokens() const { return OwnTokens().count; }

  // Returns this rank's rows: [batch * all tokens, ...] -> [batch * own tokens, ...].
  at::Tensor OwnRows(const at::Tensor& rows, int64_t batch) const;

  // Sends every rank this rank's tokens of that rank's heads, and calls `attention`, once or
  // several times, for all tokens of this rank's heads. Returns the results of all heads for this
  // rank's tokens: [batch, own tokens, 3, heads, head_dim] -> [batch, own tokens, heads, head_dim].
  // After a failure, returns the status on which the ranks agreed, or the error of `attention`.
  absl::StatusOr<at::Tensor> AttendByHeads(const at::Tensor& packed,
                                           HeadsAttention attention) const;

  // Gathers the rows of all ranks: [batch * own tokens, columns] -> [batch * tokens, columns].
  absl::StatusOr<at::Tensor> AllRows(const at::Tensor& rows, int64_t batch) const;

 private:
  // One piece of heads that arrives from other ranks while this rank computes another piece.
  struct HeadsOnTheirWay {
    at::Tensor packed;  // shape [tokens, batch, 3, heads of the piece, head_dim]
    std::unique_ptr<PendingExchange> exchange;
  };
  struct TokensOnTheirWay {
    std::vector<at::Tensor> from;  // per rank: [own tokens, batch, its heads, head_dim]
    std::unique_ptr<PendingExchange> exchange;
  };

  const Share& OwnTokens() const { return tokens_[rank_]; }
  absl::StatusOr<HeadsOnTheirWay> SendHeads(const at::Tensor& packed, int64_t piece) const;
  absl::StatusOr<TokensOnTheirWay> SendTokens(const at::Tensor& mixed, int64_t piece) const;
  // Waits until results have arrived and copies them to their heads in `own`, [batch, own tokens,
  // heads, head_dim].
  absl::Status Receive(TokensOnTheirWay arriving, int64_t piece, at::Tensor& own) const;
  // Returns the heads of `rank` that belong to `piece`.
  Share PieceOf(size_t rank, int64_t piece) const;
  absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      const std::vector<at::Tensor>& send, const std::vector<at::Tensor>& receive) const;

  Communicator* const peers_;
  const size_t rank_;
  const std::vector<Share> tokens_;  // each rank's tokens
  const std::vector<Share> heads_;
  const int64_t pieces_;
};

}  // namespace wan
