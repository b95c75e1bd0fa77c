#include "engine/group/thread_communicator.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/group/agreement.h"

namespace wan {
namespace {

class ThreadGroup final : public CommunicatorGroup {
 public:
  explicit ThreadGroup(int ranks) : sent_(static_cast<size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank)
      ends_.push_back(std::make_unique<ThreadEnd>(*this, rank));
  }

  int size() const override { return static_cast<int>(ends_.size()); }
  Communicator& End(int rank) override { return *ends_[static_cast<size_t>(rank)]; }

  void Begin(std::stop_token stop) override {
    agreement_.Begin(std::move(stop));
    for (const auto& end : ends_) end->Begin();
    absl::MutexLock lock(&mutex_);
    waiting_ = 0;
  }

  void Fail(const absl::Status& failure) override {
    agreement_.Fail(failure);
    absl::MutexLock lock(&mutex_);  // wakes those that wait
  }

 private:
  class ThreadEnd final : public Communicator {
   public:
    ThreadEnd(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return group_.size(); }

    void Begin() { points_ = 0; }
    absl::Status Agree() override { return group_.agreement_.At(points_++); }
    absl::Status Exchange(std::span<const at::Tensor> send,
                          std::span<const at::Tensor> receive) override {
      return group_.Exchange(rank_, send, receive);
    }

   private:
    ThreadGroup& group_;
    const int rank_;
    int64_t points_ = 0;
  };

  absl::Status Exchange(int rank, std::span<const at::Tensor> send,
                        std::span<const at::Tensor> receive);
  // Returns when every rank has called it as often, or with what one failed with.
  absl::Status AwaitAll();

  std::vector<std::unique_ptr<ThreadEnd>> ends_;
  Agreement agreement_;
  absl::Mutex mutex_;
  // What each rank sends in this exchange. The tensors are kept, because a rank that fails frees
  // its own while others still read them.
  std::vector<std::vector<at::Tensor>> sent_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t meetings_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status ThreadGroup::Exchange(int rank, std::span<const at::Tensor> send,
                                   std::span<const at::Tensor> receive) {
  const size_t own = static_cast<size_t>(rank);
  {
    absl::MutexLock lock(&mutex_);
    sent_[own].assign(send.begin(), send.end());
  }
  if (absl::Status status = AwaitAll(); !status.ok()) return status;
  for (size_t peer = 0; peer < ends_.size(); ++peer) {
    at::Tensor from;
    {
      absl::MutexLock lock(&mutex_);
      from = sent_[peer].at(own);
    }
    if (from.sizes() != receive[peer].sizes()) {
      absl::Status status =
          absl::InternalError(absl::StrCat("rank ", peer, " sends ", from.numel(), " values, rank ",
                                           rank, " expects ", receive[peer].numel()));
      Fail(status);
      return status;
    }
    receive[peer].copy_(from);
  }
  // Until everybody has copied, nobody may change what was sent.
  absl::Status status = AwaitAll();
  absl::MutexLock lock(&mutex_);
  sent_[own].clear();
  return status;
}

absl::Status ThreadGroup::AwaitAll() {
  absl::MutexLock lock(&mutex_);
  if (++waiting_ == ends_.size()) {
    waiting_ = 0;
    ++meetings_;
    return absl::OkStatus();
  }
  const int64_t meeting = meetings_;
  const auto over = [this, meeting]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return meetings_ != meeting || !agreement_.failure().ok();
  };
  mutex_.Await(absl::Condition(&over));
  return meetings_ != meeting ? absl::OkStatus() : agreement_.failure();
}

}  // namespace

std::unique_ptr<CommunicatorGroup> MakeThreadGroup(int ranks) {
  return std::make_unique<ThreadGroup>(ranks);
}

}  // namespace wan
