#include "engine/group/thread_communicator.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/device/device_wait.h"
#include "engine/group/agreement.h"

namespace wan {
namespace {

// Orders the copies that one rank receives among the work of all ranks. Only the rank's thread
// calls it, except that peers read the two marks after the rank has set them and before it sets
// them again; the group's meetings see to that. On a CPU it only copies.
class RankQueue {
 public:
  RankQueue(size_t rank, const std::vector<c10::Device>& devices)
      : device_(devices[rank]), sent_(device_.type()), received_(device_.type()) {
    if (device_.is_cpu()) return;
    const c10::DeviceGuard on_device(device_);
    sink_ = StreamOf(device_);
    for (const c10::Device& peer : devices) {
      sources_.push_back(StreamOf(peer));
      // LibTorch opens the access between two GPUs at their first copy, and not thread-safely.
      at::empty({1}, at::TensorOptions(device_)).copy_(at::empty({1}, at::TensorOptions(peer)));
    }
  }

  // All that is queued so far has to happen before a peer reads what this rank sends.
  void MarkSent() {
    if (!device_.is_cpu()) sent_.record(Compute());
  }

  // Queues the copy of what a peer has marked as sent. Copies from peers run one after the other,
  // beside this rank's own work and beside the copies that peers receive: LibTorch would queue them
  // among the computing work of both, where the two directions of a link take turns.
  void Receive(size_t peer, const RankQueue& sender, const at::Tensor& from, const at::Tensor& to) {
    if (device_.is_cpu() || sender.device_ == device_) {
      to.copy_(from);
      return;
    }
    sent_.block(*sink_);  // what was queued before may still use the memory of `to`
    sender.sent_.block(sources_[peer]);
    // A copy between GPUs is queued on the current stream of the one that it reads from, and the
    // current stream of the other waits for it.
    const c10::MultiStreamGuard on_streams({sources_[peer], *sink_});
    to.copy_(from, /*non_blocking=*/true);
  }

  // Lets this rank's further work wait for what it received.
  void MarkReceived() {
    if (device_.is_cpu()) return;
    received_.record(*sink_);
    received_.block(Compute());
  }

  // Lets this rank's further work wait until a peer has received, so that it may change what it
  // sent.
  void AwaitReceived(const RankQueue& peer) {
    if (!device_.is_cpu()) peer.received_.block(Compute());
  }

 private:
  static c10::Stream StreamOf(c10::Device device) {
    return c10::impl::VirtualGuardImpl(device.type())
        .getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  }
  c10::Stream Compute() const { return at::accelerator::getCurrentStream(device_.index()); }

  const c10::Device device_;
  std::optional<c10::Stream> sink_;   // on this rank's device
  std::vector<c10::Stream> sources_;  // on each peer's device
  c10::Event sent_;
  c10::Event received_;
};

class ThreadGroup final : public CommunicatorGroup {
 public:
  explicit ThreadGroup(const std::vector<c10::Device>& devices)
      : devices_(devices), meters_(devices.size()), sent_(devices.size()) {
    for (size_t rank = 0; rank < devices.size(); ++rank) {
      queues_.push_back(std::make_unique<RankQueue>(rank, devices));
      ends_.push_back(std::make_unique<ThreadEnd>(*this, static_cast<int>(rank)));
    }
  }

  int size() const override { return static_cast<int>(ends_.size()); }
  Communicator& End(int rank) override { return *ends_[static_cast<size_t>(rank)]; }

  void CountIn(int rank, std::shared_ptr<ExchangeMeter> meter) override {
    meters_[static_cast<size_t>(rank)] = std::move(meter);
  }

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

  const std::vector<c10::Device> devices_;
  std::vector<std::shared_ptr<ExchangeMeter>> meters_;  // a rank's thread uses its own
  std::vector<std::unique_ptr<ThreadEnd>> ends_;
  std::vector<std::unique_ptr<RankQueue>> queues_;
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
  RankQueue& queue = *queues_[own];
  DeviceWait wait(devices_[own], meters_[own]);
  queue.MarkSent();
  {
    absl::MutexLock lock(&mutex_);
    sent_[own].assign(send.begin(), send.end());
  }
  if (absl::Status status = AwaitAll(); !status.ok()) return status;
  // Each rank begins at another peer, so that no link has to carry several copies at once.
  for (size_t turn = 1; turn <= ends_.size(); ++turn) {
    const size_t peer = (own + turn) % ends_.size();
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
    queue.Receive(peer, *queues_[peer], from, receive[peer]);
  }
  queue.MarkReceived();
  // Until everybody has copied, or queued it, nobody may change what was sent.
  if (absl::Status status = AwaitAll(); !status.ok()) return status;
  for (const std::unique_ptr<RankQueue>& peer : queues_) queue.AwaitReceived(*peer);
  wait.End();
  if (meters_[own] != nullptr) {
    uint64_t bytes = 0;
    for (size_t peer = 0; peer < send.size(); ++peer) {
      if (peer != own) bytes += static_cast<uint64_t>(send[peer].nbytes());
    }
    meters_[own]->CountSent(bytes);
  }
  absl::MutexLock lock(&mutex_);
  sent_[own].clear();
  return absl::OkStatus();
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

std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices) {
  const c10::InferenceMode inference;
  return std::make_unique<ThreadGroup>(devices);
}

}  // namespace wan
