#include "engine/models/wan/shared_tokens.h"

#include <ATen/ops/empty.h>

namespace wan {

SharedTokens::SharedTokens(Communicator* peers, int64_t tokens, int64_t heads)
    : peers_(peers),
      rank_(peers == nullptr ? 0 : static_cast<size_t>(peers->rank())),
      tokens_(SharesOf(tokens, peers == nullptr ? 1 : peers->size())),
      heads_(SharesOf(heads, peers == nullptr ? 1 : peers->size())) {}

at::Tensor SharedTokens::OwnRows(const at::Tensor& rows, int64_t batch) const {
  if (IsAlone()) return rows;
  const int64_t tokens = rows.size(0) / batch;
  const at::Tensor own =
      rows.unflatten(0, {batch, tokens}).narrow(1, OwnTokens().first, OwnTokens().count);
  return own.flatten(0, 1).contiguous();
}

// Tokens come first in what is sent and received, so that each rank's part of it is one piece of
// memory whatever the batch is.

absl::StatusOr<at::Tensor> SharedTokens::ToHeads(const at::Tensor& packed) const {
  if (IsAlone()) return packed;
  const at::Tensor all = at::empty({tokens_.back().first + tokens_.back().count, packed.size(0),
                                    packed.size(2), OwnHeads().count, packed.size(4)},
                                   packed.options());
  const at::Tensor tokens_first = packed.transpose(0, 1);
  std::vector<at::Tensor> send;
  std::vector<at::Tensor> receive;
  for (size_t rank = 0; rank < tokens_.size(); ++rank) {
    receive.push_back(all.narrow(0, tokens_[rank].first, tokens_[rank].count));
    const at::Tensor part = tokens_first.narrow(3, heads_[rank].first, heads_[rank].count);
    if (rank == rank_) {
      send.push_back(receive.back().copy_(part));  // where it belongs already
    } else {
      send.push_back(part.contiguous());
    }
  }
  if (absl::Status status = Exchange(send, receive); !status.ok()) return status;
  return all.transpose(0, 1);
}

absl::StatusOr<at::Tensor> SharedTokens::ToTokens(const at::Tensor& mixed) const {
  if (IsAlone()) return mixed;
  const at::Tensor tokens_first = mixed.transpose(0, 1).contiguous();
  std::vector<at::Tensor> send;
  std::vector<at::Tensor> receive;
  for (size_t rank = 0; rank < tokens_.size(); ++rank) {
    send.push_back(tokens_first.narrow(0, tokens_[rank].first, tokens_[rank].count));
    receive.push_back(rank == rank_ ? send.back()
                                    : at::empty({OwnTokens().count, mixed.size(0),
                                                 heads_[rank].count, mixed.size(3)},
                                                mixed.options()));
  }
  if (absl::Status status = Exchange(send, receive); !status.ok()) return status;
  const at::Tensor own = at::empty(
      {mixed.size(0), OwnTokens().count, heads_.back().first + heads_.back().count, mixed.size(3)},
      mixed.options());
  for (size_t rank = 0; rank < heads_.size(); ++rank) {
    own.narrow(2, heads_[rank].first, heads_[rank].count).copy_(receive[rank].transpose(0, 1));
  }
  return own;
}

absl::StatusOr<at::Tensor> SharedTokens::AllRows(const at::Tensor& rows, int64_t batch) const {
  if (IsAlone()) return rows;
  const at::Tensor own = rows.view({batch, OwnTokens().count, -1}).transpose(0, 1).contiguous();
  const at::Tensor all =
      at::empty({tokens_.back().first + tokens_.back().count, batch, rows.size(1)}, rows.options());
  const std::vector<at::Tensor> send(tokens_.size(), own);
  std::vector<at::Tensor> receive;
  for (const Share& share : tokens_) receive.push_back(all.narrow(0, share.first, share.count));
  if (absl::Status status = Exchange(send, receive); !status.ok()) return status;
  return all.transpose(0, 1).reshape({-1, rows.size(1)});
}

absl::Status SharedTokens::Exchange(const std::vector<at::Tensor>& send,
                                    const std::vector<at::Tensor>& receive) const {
  if (absl::Status status = peers_->Agree(); !status.ok()) return status;
  return peers_->Exchange(send, receive);
}

}  // namespace wan
