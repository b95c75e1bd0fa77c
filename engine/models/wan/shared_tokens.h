// One rank's part of a forward that several ranks compute together: it has some of the tokens and,
// for the self-attention, all tokens of some of the heads (DeepSpeed-Ulysses, arXiv 2309.14509).
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

// Used by one forward. Rows of a batch are all tokens of its first entry, then those of the next.
class SharedTokens {
 public:
  // The attention of some heads, queries, keys and values side by side:
  // [batch, tokens, 3, heads, head_dim] -> [batch, tokens, heads, head_dim].
  using HeadsAttention = absl::FunctionRef<absl::StatusOr<at::Tensor>(const at::Tensor& packed)>;

  // Null: this rank computes everything. From `fewest_overlapped` tokens on, heads are exchanged in
  // pieces beside the attention of others (engine/costs/wan/shared_tokens_cost.h).
  SharedTokens(Communicator* peers, int64_t tokens, int64_t heads, int64_t fewest_overlapped);

  bool IsAlone() const { return peers_ == nullptr; }
  int64_t ranks() const { return static_cast<int64_t>(tokens_.size()); }

  // The number of this rank's tokens, of one entry of the batch.
  int64_t tokens() const { return OwnTokens().count; }

  // [batch * all tokens, ...] -> [batch * own tokens, ...].
  at::Tensor OwnRows(const at::Tensor& rows, int64_t batch) const;

  // Gives each rank its heads of all tokens, for which it calls `attention`, once or several times,
  // and brings back the results of all heads for its own tokens: [batch, own tokens, 3, heads,
  // head_dim] -> [batch, own tokens, heads, head_dim]. Returns the status on which the ranks agree,
  // or the error of `attention`.
  absl::StatusOr<at::Tensor> AttendByHeads(const at::Tensor& packed,
                                           HeadsAttention attention) const;

  // Gathers the rows of all ranks: [batch * own tokens, columns] -> [batch * tokens, columns].
  absl::StatusOr<at::Tensor> AllRows(const at::Tensor& rows, int64_t batch) const;

 private:
  // A piece that arrives while another one is computed.
  struct HeadsOnTheirWay {
    at::Tensor packed;  // [tokens, batch, 3, heads of the piece, head_dim]
    std::unique_ptr<PendingExchange> exchange;
  };
  struct TokensOnTheirWay {
    std::vector<at::Tensor> from;  // for each rank, [own tokens, batch, its heads, head_dim]
    std::unique_ptr<PendingExchange> exchange;
  };

  const Share& OwnTokens() const { return tokens_[rank_]; }
  absl::StatusOr<HeadsOnTheirWay> SendHeads(const at::Tensor& packed, int64_t piece) const;
  absl::StatusOr<TokensOnTheirWay> SendTokens(const at::Tensor& mixed, int64_t piece) const;
  // Awaits them, and puts them where they belong in `own`, [batch, own tokens, heads, head_dim].
  absl::Status Receive(TokensOnTheirWay arriving, int64_t piece, at::Tensor& own) const;
  // The heads of a rank that belong to a piece.
  Share PieceOf(size_t rank, int64_t piece) const;
  absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
      const std::vector<at::Tensor>& send, const std::vector<at::Tensor>& receive) const;

  Communicator* const peers_;
  const size_t rank_;
  const std::vector<Share> tokens_;  // for each rank
  const std::vector<Share> heads_;
  const int64_t pieces_;
};

}  // namespace wan
