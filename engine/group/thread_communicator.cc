#include "engine/group/thread_communicator.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <cstddef>
#include <cstdint>
#include <map>
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

// A rank's part in an exchange. The rank's thread sets the marks before peers read them; the
// counters in Round ensure this order.
struct Part {
  explicit Part(c10::DeviceType device) : sent(device), received(device) {}

  // Keeps the tensors alive: a rank that fails frees its own references while peers still read the
  // tensors.
  std::vector<at::Tensor> send;
  c10::Event sent;      // mark after the work that computes the tensors to send
  c10::Event received;  // mark after the copies of the peers' tensors
};

// One exchange of all ranks.
struct Round {
  std::vector<Part> parts;
  // The group's mutex guards both counters.
  size_t begun = 0;   // number of ranks that have completed their Part
  size_t copied = 0;  // number of ranks that have made their copies (CPU) or queued them (GPU)
};

// Queues the copies to one rank's device, in the right order with the work around them. Only the
// rank's thread calls the functions. On a CPU there is no queue, and Receive copies at once.
class RankQueue {
 public:
  RankQueue(size_t rank, const std::vector<c10::Device>& devices) : device_(devices[rank]) {
    if (device_.is_cpu()) return;
    const c10::DeviceGuard on_device(device_);
    sink_ = StreamOf(device_);
    for (const c10::Device& peer : devices) {
      sources_.push_back(StreamOf(peer));
      // Make a first copy here: LibTorch opens access between the devices at the first copy, which
      // is not thread-safe.
      at::empty({1}, at::TensorOptions(device_)).copy_(at::empty({1}, at::TensorOptions(peer)));
    }
  }

  // Records the mark before which peers may not read this rank's tensors, after all work that is
  // queued so far.
  void MarkSent(Part& own) const {
    if (!device_.is_cpu()) own.sent.record(Compute());
  }

  // Queues the copy of a tensor for which a peer has recorded its mark. Copies from different peers
  // run one after the other, but in parallel to this rank's work and to the copies of other ranks.
  // Without this class, LibTorch would queue the copies between the computing work of both devices,
  // so that the two directions of the link would have to take turns.
  void Receive(size_t peer, const RankQueue& sender, const Part& theirs, const Part& own,
               const at::Tensor& from, const at::Tensor& to) const {
    if (device_.is_cpu() || sender.device_ == device_) {
      to.copy_(from);
      return;
    }
    own.sent.block(*sink_);  // work that was queued earlier may still use the memory of `to`
    theirs.sent.block(sources_[peer]);
    // LibTorch queues a copy between two GPUs on the current stream of the source, and makes the
    // current stream of the destination wait for the copy.
    const c10::MultiStreamGuard on_streams({sources_[peer], *sink_});
    to.copy_(from, /*non_blocking=*/true);
  }

  void MarkReceived(Part& own) const {
    if (!device_.is_cpu()) own.received.record(*sink_);
  }

  // Makes work that this rank queues later wait until the rank that owns `part` has received its
  // tensors.
  void AwaitReceived(const Part& part) const {
    if (!device_.is_cpu()) part.received.block(Compute());
  }

 private:
  static c10::Stream StreamOf(c10::Device device) {
    return c10::impl::VirtualGuardImpl(device.type())
        .getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  }
  c10::Stream Compute() const { return at::accelerator::getCurrentStream(device_.index()); }

  const c10::Device device_;
  std::optional<c10::Stream> sink_;   // the stream for copies on this rank's device
  std::vector<c10::Stream> sources_;  // the stream for copies on each peer's device
};

class ThreadGroup final : public CommunicatorGroup {
 public:
  explicit ThreadGroup(const std::vector<c10::Device>& devices)
      : devices_(devices), meters_(devices.size()) {
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
    rounds_.clear();
  }

  void Fail(const absl::Status& failure) override {
    agreement_.Fail(failure);
    absl::MutexLock lock(&mutex_);  // wakes the ranks that wait
  }

 private:
  class ThreadEnd final : public Communicator {
   public:
    ThreadEnd(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return group_.size(); }

    void Begin() {
      points_ = 0;
      rounds_ = 0;
    }
    absl::Status Agree() override { return group_.agreement_.At(points_++); }
    absl::StatusOr<std::unique_ptr<PendingExchange>> Start(
        std::span<const at::Tensor> send, std::span<const at::Tensor> receive) override {
      return group_.Start(static_cast<size_t>(rank_), rounds_++, send, receive);
    }

   private:
    ThreadGroup& group_;
    const int rank_;
    int64_t points_ = 0;
    int64_t rounds_ = 0;
  };

  class ThreadExchange final : public PendingExchange {
   public:
    ThreadExchange(ThreadGroup& group, size_t rank, std::shared_ptr<Round> round)
        : group_(group), rank_(rank), round_(std::move(round)) {}
    ~ThreadExchange() override {
      // Wait for the copies: they may still write to memory that later work could get.
      if (!awaited_) group_.queues_[rank_]->AwaitReceived(round_->parts[rank_]);
    }

    absl::Status Await() override {
      awaited_ = true;
      return group_.Await(rank_, *round_);
    }

   private:
    ThreadGroup& group_;
    const size_t rank_;
    const std::shared_ptr<Round> round_;
    bool awaited_ = false;
  };

  absl::StatusOr<std::unique_ptr<PendingExchange>> Start(size_t rank, int64_t number,
                                                         std::span<const at::Tensor> send,
                                                         std::span<const at::Tensor> receive);
  absl::Status Await(size_t rank, Round& round);
  // Returns exchange `number` of this forward; the rank that enters it first creates it.
  std::shared_ptr<Round> Enter(int64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds this rank to `count`, then waits until `count` includes all ranks or a rank has failed.
  absl::Status MeetAll(size_t& count) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AwaitAll(const size_t& count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<c10::Device> devices_;
  std::vector<std::shared_ptr<ExchangeMeter>> meters_;  // one meter per rank; a rank's thread uses
                                                        // only the rank's meter
  std::vector<std::unique_ptr<ThreadEnd>> ends_;
  std::vector<std::unique_ptr<RankQueue>> queues_;
  Agreement agreement_;
  absl::Mutex mutex_;
  // The exchanges that some ranks have not entered yet, by their number in this forward.
  std::map<int64_t, std::shared_ptr<Round>> rounds_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<PendingExchange>> ThreadGroup::Start(
    size_t rank, int64_t number, std::span<const at::Tensor> send,
    std::span<const at::Tensor> receive) {
  const c10::Device device = devices_[rank];
  const RankQueue& queue = *queues_[rank];
  const std::shared_ptr<Round> round = Enter(number);
  Part& own = round->parts[rank];
  own.send.assign(send.begin(), send.end());
  queue.MarkSent(own);
  auto pending = std::make_unique<ThreadExchange>(*this, rank, round);
  // On a CPU, Start itself waits and copies; on a GPU, Start only queues the wait and the copies.
  DeviceWait wait(device, device.is_cpu() ? meters_[rank] : nullptr);
  if (absl::Status status = MeetAll(round->begun); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    rounds_.erase(number);  // every rank has entered the exchange
  }
  // Each rank begins with a different peer, so that no link carries several copies at the same
  // time.
  for (size_t turn = 1; turn <= ends_.size(); ++turn) {
    const size_t peer = (rank + turn) % ends_.size();
    const Part& theirs = round->parts[peer];
    const at::Tensor& from = theirs.send.at(rank);
    if (from.sizes() != receive[peer].sizes()) {
      queue.MarkReceived(own);
      absl::Status status =
          absl::InternalError(absl::StrCat("rank ", peer, " sends ", from.numel(), " values, rank ",
                                           rank, " expects ", receive[peer].numel()));
      Fail(status);
      return status;
    }
    queue.Receive(peer, *queues_[peer], theirs, own, from, receive[peer]);
  }
  queue.MarkReceived(own);
  wait.End();
  absl::MutexLock lock(&mutex_);
  ++round->copied;
  return pending;
}

absl::Status ThreadGroup::Await(size_t rank, Round& round) {
  DeviceWait wait(devices_[rank], meters_[rank]);
  absl::Status status;
  {
    // A rank may change the tensors that it sent only after all ranks have copied them or queued
    // their copies.
    absl::MutexLock lock(&mutex_);
    status = AwaitAll(round.copied);
  }
  const RankQueue& queue = *queues_[rank];
  if (!status.ok()) {
    queue.AwaitReceived(round.parts[rank]);
    return status;
  }
  for (const Part& part : round.parts) queue.AwaitReceived(part);
  wait.End();
  std::vector<at::Tensor>& sent = round.parts[rank].send;
  if (meters_[rank] != nullptr) {
    uint64_t bytes = 0;
    for (size_t peer = 0; peer < sent.size(); ++peer) {
      if (peer != rank) bytes += static_cast<uint64_t>(sent[peer].nbytes());
    }
    meters_[rank]->CountSent(bytes);
  }
  sent.clear();  // free the tensors: a slower rank may keep the exchange alive, but nobody reads
                 // them any more
  return absl::OkStatus();
}

std::shared_ptr<Round> ThreadGroup::Enter(int64_t number) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Round>& round = rounds_[number];
  if (round == nullptr) {
    round = std::make_shared<Round>();
    for (const c10::Device& device : devices_) round->parts.emplace_back(device.type());
  }
  return round;
}

absl::Status ThreadGroup::MeetAll(size_t& count) {
  absl::MutexLock lock(&mutex_);
  ++count;
  return AwaitAll(count);
}

absl::Status ThreadGroup::AwaitAll(const size_t& count) {
  const auto over = [this, &count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return count == ends_.size() || !agreement_.failure().ok();
  };
  mutex_.Await(absl::Condition(&over));
  return count == ends_.size() ? absl::OkStatus() : agreement_.failure();
}

}  // namespace

std::unique_ptr<CommunicatorGroup> MakeThreadGroup(const std::vector<c10::Device>& devices) {
  const c10::InferenceMode inference;
  return std::make_unique<ThreadGroup>(devices);
}

}  // namespace wan
