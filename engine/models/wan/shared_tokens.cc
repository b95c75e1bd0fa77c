#include "engine/models/wan/shared_tokens.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "engine/costs/wan/shared_tokens_cost.h"

namespace wan {

SharedTokens::SharedTokens(Communicator* peers, int64_t tokens, int64_t heads,
                           int64_t fewest_overlapped)
    : peers_(peers),
      rank_(peers == nullptr ? 0 : static_cast<size_t>(peers->rank())),
      tokens_(SharesOf(tokens, peers == nullptr ? 1 : peers->size())),
      heads_(SharesOf(heads, peers == nullptr ? 1 : peers->size())),
      pieces_(ExchangePieces(tokens, fewest_overlapped)) {}

at::Tensor SharedTokens::OwnRows(const at::Tensor& rows, int64_t batch) const {
  if (IsAlone()) return rows;
  const int64_t tokens = rows.size(0) / batch;
  const at::Tensor own =
      rows.unflatten(0, {batch, tokens}).narrow(1, OwnTokens().first, OwnTokens().count);
  return own.flatten(0, 1).contiguous();
}

Share SharedTokens::PieceOf(size_t rank, int64_t piece) const {
  return PieceOfHeads(heads_[rank], piece, pieces_);
}

// Tensors are sent and received with tokens as the first dimension, so that each rank's part is
// contiguous for any batch.

absl::StatusOr<SharedTokens::HeadsOnTheirWay> SharedTokens::SendHeads(const at::Tensor& packed,
                                                                      int64_t piece) const {
  HeadsOnTheirWay sent;
  sent.packed = at::empty({tokens_.back().first + tokens_.back().count, packed.size(0),
                           packed.size(2), PieceOf(rank_, piece).count, packed.size(4)},
                          packed.options());
  const at::Tensor tokens_first = packed.transpose(0, 1);
  std::vector<at::Tensor> send;
  std::vector<at::Tensor> receive;
  for (size_t rank = 0; rank < tokens_.size(); ++rank) {
    receive.push_back(sent.packed.narrow(0, tokens_[rank].first, tokens_[rank].count));
    const Share heads = PieceOf(rank, piece);
    const at::Tensor part = tokens_first.narrow(3, heads.first, heads.count);
    if (rank == rank_) {
      send.push_back(receive.back().copy_(part));  // this rank keeps its own part; no exchange
    } else {
      send.push_back(part.contiguous());
    }
  }
  absl::StatusOr<std::unique_ptr<PendingExchange>> exchange = Start(send, receive);
  if (!exchange.ok()) return exchange.status();
  sent.exchange = *std::move(exchange);
  return sent;
}

absl::StatusOr<SharedTokens::TokensOnTheirWay> SharedTokens::SendTokens(const at::Tensor& mixed,
                                                                        int64_t piece) const {
  TokensOnTheirWay sent;
  const at::Tensor tokens_first = mixed.transpose(0, 1).contiguous();
  std::vector<at::Tensor> send;
  for (size_t rank = 0; rank < tokens_.size(); ++rank) {
    send.push_back(tokens_first.narrow(0, tokens_[rank].first, tokens_[rank].count));
    sent.from.push_back(rank == rank_ ? send.back()
                                      : at::empty({OwnTokens().count, mixed.size(0),
                                                   PieceOf(rank, piece).count, mixed.size(3)},
                                                  mixed.options()));
  }
  absl::StatusOr<std::unique_ptr<PendingExchange>> exchange = Start(send, sent.from);
  if (!exchange.ok()) return exchange.status();
  sent.exchange = *std::move(exchange);
  return sent;
}

absl::Status SharedTokens::Receive(TokensOnTheirWay arriving, int64_t piece,
                                   at::Tensor& own) const {
  if (absl::Status status = arriving.exchange->Await(); !status.ok()) return status;
  for (size_t rank = 0; rank < heads_.size(); ++rank) {
    const Share heads = PieceOf(rank, piece);
    own.narrow(2, heads.first, heads.count).copy_(arriving.from[rank].transpose(0, 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> SharedTokens::AttendByHeads(const at::Tensor& packed,
                                                       HeadsAttention attention) const {
  if (IsAlone()) return attention(packed);
  at::Tensor own =
      at::empty({packed.size(0), packed.size(1), packed.size(3), packed.size(4)}, packed.options());
  absl::StatusOr<HeadsOnTheirWay> heads = SendHeads(packed, 0);
  if (!heads.ok()) return heads.status();
  absl::StatusOr<TokensOnTheirWay> tokens;
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    // While this rank computes one piece, the next piece arrives, and the previous piece's results
    // are sent.
    absl::StatusOr<HeadsOnTheirWay> next;
    if (piece + 1 < pieces_) {
      next = SendHeads(packed, piece + 1);
      if (!next.ok()) return next.status();
    }
    if (absl::Status status = heads->exchange->Await(); !status.ok()) return status;
    const absl::StatusOr<at::Tensor> mixed = attention(heads->packed.transpose(0, 1));
    if (!mixed.ok()) return mixed.status();
    heads = std::move(next);
    absl::StatusOr<TokensOnTheirWay> results = SendTokens(*mixed, piece);
    if (!results.ok()) return results.status();
    if (piece > 0) {
      if (absl::Status status = Receive(*std::move(tokens), piece - 1, own); !status.ok()) {
        return status;
      }
    }
    tokens = std::move(results);
  }
  if (absl::Status status = Receive(*std::move(tokens), pieces_ - 1, own); !status.ok()) {
    return status;
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
  const absl::StatusOr<std::unique_ptr<PendingExchange>> exchange = Start(send, receive);
  if (!exchange.ok()) return exchange.status();
  if (absl::Status status = (*exchange)->Await(); !status.ok()) return status;
  return all.transpose(0, 1).reshape({-1, rows.size(1)});
}

absl::StatusOr<std::unique_ptr<PendingExchange>> SharedTokens::Start(
    const std::vector<at::Tensor>& send, const std::vector<at::Tensor>& receive) const {
  if (absl::Status status = peers_->Agree(); !status.ok()) return status;
  return peers_->Start(send, receive);
}

}  // namespace wan
