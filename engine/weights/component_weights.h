// Moves the weights of one component, in groups (a transformer's blocks), between the device, host
// memory and the checkpoint's files. The component's tensors stay the same objects; only the memory
// that they use changes.
//
//   weights->Use(1, /*next=*/2);      // the component, before it computes with group 1
//   weights->BringUp();               // its owner, long before
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/held_bytes.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/device/work_gate.h"
#include "engine/ops/rounding.h"
#include "engine/weights/weight_feed.h"
#include "engine/weights/weight_mover.h"
#include "engine/weights/weight_patch.h"
#include "engine/weights/weight_reader.h"

namespace wan {

// The sizes of a component's groups, in bytes of device memory.
struct WeightSizes {
  int64_t total = 0;
  int64_t base = 0;           // bytes of the first group, which is never streamed
  int64_t largest_group = 0;  // bytes of the largest other group
};

// The place in the component of one tensor of the checkpoint.
struct NamedWeight {
  size_t group = 0;
  // The tensor in the checkpoint's shape. It is a view if the component packs several tensors into
  // one. Undefined for a matrix in 8 bits.
  at::Tensor tensor;
  // Set for a matrix in 8 bits: the matrix, and the dtype from which it was rounded.
  RoundedRows rounded;
  at::ScalarType rounded_from = at::kFloat;
};

// Thread-safe. Exceptions of LibTorch pass through, for example c10::OutOfMemoryError if the device
// has no room; in that case the weights are parked. Every function that moves weights throws
// StatusException if it cannot read them again from their files.
//
// Every function that moves weights takes a stop token. After a stop request it throws
// StatusException with CANCELLED, and at most FeedLimits::window_bytes of copies still occupy the
// device. A later BringUp, Stream or SetPatch makes the weights usable again.
class ComponentWeights {
 public:
  // The place of all groups after loading. kDisk frees the group's memory and keeps no copy.
  enum class Home { kDevice, kHost, kDisk };

  // `source` is the source from which the weights are loaded. The object keeps a reference to
  // `source`, so that weights can be dropped and read again. If `source` is null, weights can never
  // be dropped, and Home::kDisk is not allowed.
  ComponentWeights(std::unique_ptr<WeightMover> mover, Home home,
                   std::shared_ptr<const WeightSource> source = nullptr,
                   const FeedLimits& feed_limits = {});
  // Waits for running copies, because their memory is freed.
  ~ComponentWeights();
  ComponentWeights(const ComponentWeights&) = delete;
  ComponentWeights& operator=(const ComponentWeights&) = delete;

  // Returns the mover that copies these weights.
  WeightMover& mover() { return *mover_; }
  Home home() const { return home_; }
  const std::shared_ptr<const WeightSource>& source() const { return source_; }

  // From now on `held` counts this object's device memory as well. Null: only DeviceBytes() counts
  // it. Call this at most once, before other threads use the object.
  void CountIn(std::shared_ptr<HeldBytes> held) {
    held_ = std::move(held);
    if (held_ != nullptr) held_->Add(device_bytes_);
  }

  // --- Building the object. The component's loader calls these functions.

  // Begins the next group; tensors added after this belong to it. The first group begins without a
  // call.
  void BeginGroup();
  // Adds a tensor to the current group. The tensor must cover its storage and share it only with
  // views of itself, and its values must be complete when the group ends.
  void Add(const at::Tensor& tensor);
  // Records that `view` (a tensor of the current group, or a part of one) holds the checkpoint's
  // tensor `name`.
  void Name(std::string_view name, const at::Tensor& view);
  // Records that `rows`, a matrix that was rounded from `dtype`, holds the checkpoint's tensor
  // `name`.
  void Name(std::string_view name, const RoundedRows& rows, at::ScalarType dtype);
  // Ends the last group.
  void FinishBuilding();
  // Sets the reader that reads dropped groups again. Without a reader, groups cannot be dropped.
  void SetReader(std::unique_ptr<const WeightReader> reader);

  // --- Moving weights. The code that decides where weights are calls these functions.

  // Starts to copy all groups that are not on the device, in order, and returns at once. A thread
  // makes the copies; if a stop request ended the copying, Use throws. Groups without a copy in
  // host memory are read from the checkpoint before the call returns.
  void BringUp(const std::stop_token& stop = {});
  // Keeps only three groups on the device: the first group, the group in use, and the group after
  // it. The first call also copies all groups to host memory.
  void Stream(const std::stop_token& stop = {});
  // Moves the weights to host memory; when the call returns, their device memory is free. Only the
  // first call of Park copies the weights. If a stop request ends the call, the weights stay where
  // they were.
  void Park(const std::stop_token& stop = {});
  // Frees the weights' device memory without first copying them to host memory. Groups without a
  // copy in host memory are read from the checkpoint when they are needed again. If no reader was
  // set, Drop does the same as Park.
  void Drop();
  // Returns whether every group is on the device or is being copied there.
  bool IsUp() const;
  // Returns a number that changes whenever the memory of a tensor changes. As long as the number is
  // the same, addresses of weights stay valid. A patch changes weights in place and does not change
  // this number.
  uint64_t Placement() const { return placement_; }
  WeightSizes Sizes() const;
  // Returns the bytes of device memory that the weights hold now. The call does not wait for a move
  // that is running.
  int64_t DeviceBytes() const { return device_bytes_; }
  // Returns the bytes of the weights' copies in host memory, which only FreeHostCopy frees. The
  // call does not wait for a move that is running.
  int64_t HostBytes() const { return host_bytes_; }

  // --- Patching weights. The code that chooses the LoRAs calls these functions. A group is patched
  // on the device at its first use after it has arrived. The unpatched bits stay in host memory or
  // on disk, and are restored before a different patch is applied.

  // Returns where the tensor `name` is kept; nullopt if the component did not load it.
  std::optional<NamedWeight> Find(std::string_view name) const;
  // Makes the missing copies in host memory now, so that no later Park or SetPatch has to make
  // them. A group that is neither on the device nor in host memory is read from the checkpoint;
  // only one group at a time takes device memory.
  void KeepHostCopy(const std::stop_token& stop = {});
  // Takes back a KeepHostCopy, also one that has thrown, of weights that had no copies before:
  // frees those of groups whose unpatched bits are on the device or can be read again. Call it
  // before any other function that moves weights. Does not throw.
  void FreeHostCopy();
  // Replaces the current patch by `patch`; null removes it. Groups on the device that the change
  // concerns are fetched again: from host memory asynchronously, as BringUp does, or from the
  // checkpoint before the call returns. Returns whether the change concerns any group.
  bool SetPatch(std::shared_ptr<const WeightPatch> patch, const std::stop_token& stop = {});
  // Patches all groups on the device now, not at their first use, and returns when the device has
  // finished. CANCELLED after a stop request, because every group passes `gate`; the remaining
  // groups are then patched at their first use.
  absl::Status FinishPatch(const WorkGate& gate = {});

  // --- Using weights. The component calls these functions.

  // Prepares `group`: work that the caller queues before its next Use may read `group` and the
  // first group. `next` is the group that will be used after `group`. If weights are streamed, Use
  // also starts to fetch `next`. Blocks until the group's copy is queued. Throws c10::Error if the
  // weights are parked.
  void Use(size_t group, size_t next);
  // Prepares all groups at once. Only components that are never streamed may call UseAll.
  void UseAll();

 private:
  struct Tensor {
    c10::Storage storage;
    int64_t offset = 0;  // bytes from the start of the group's memory
  };
  struct Group {
    std::vector<Tensor> tensors;
    int64_t bytes = 0;
    at::Tensor host;    // undefined before the first copy to the host
    at::Tensor device;  // undefined if tensors own their memory, use a slot or have none
    bool bound = true;  // whether the group's tensors have memory
    WeightMover::Mark arrival;
    bool fed = false;  // feed_ is copying the group; `arrival` is set once the copy is queued
    // The patch whose result is in the memory; null: the weights are unpatched. `torn`: a patch or
    // a copy did not finish, so the values are undefined.
    std::shared_ptr<const WeightPatch> patch;
    bool torn = false;
  };
  // Device memory that holds one streamed group at a time.
  struct Slot {
    static constexpr size_t kNone = ~size_t{0};
    at::Tensor memory;
    size_t group = kNone;
  };
  enum class State { kUp, kStreaming, kParked };

  // Adds `bytes` (negative: subtracts them) to the count of device memory.
  void Hold(int64_t bytes) {
    device_bytes_ += bytes;
    if (held_ != nullptr) held_->Add(bytes);
  }
  void CloseGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyToHost(Group& group, const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts feed_, which copies the groups from host memory. The groups' tensors must have memory
  // (bound).
  void Feed(std::span<const size_t> groups, const WeightMover::Mark& after,
            const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends feed_, and marks the groups whose copies are not queued yet as torn.
  void EndFeed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fetch(Group& group, const at::Tensor& device, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Bind(Group& group, const at::Tensor& device);
  void Unbind(Group& group);
  void Arrive(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the group's copy, then applies the patch that is set.
  void MakeReady(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const WeightPatch> PatchOf(size_t group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues the work that patches a group, and keeps the patch alive until the device has done that
  // work.
  void Apply(const std::shared_ptr<const WeightPatch>& patch, size_t group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the group is torn or has a patch that is no longer set.
  bool MustRestore(size_t group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the groups their unpatched bits again, from host memory or from the checkpoint. Call
  // Restore only while feed_ is idle.
  void Restore(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FetchIntoSlot(size_t group, size_t keep, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the unpatched bits of the groups, which must have device memory, from the checkpoint. If
  // the function throws, the groups are torn.
  void ReadBase(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepHostCopyLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ParkLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees the weights' device memory.
  void Release() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<WeightMover> mover_;
  std::atomic<int64_t> host_bytes_ = 0;
  std::atomic<int64_t> device_bytes_ = 0;
  std::shared_ptr<HeldBytes> held_;
  std::atomic<uint64_t> placement_ = 0;
  const Home home_;
  const std::shared_ptr<const WeightSource> source_;
  const FeedLimits feed_limits_;

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  std::vector<Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::array<Slot, 2> slots_ ABSL_GUARDED_BY(mutex_);
  // A mark after the latest copy to the device; copies run one after the other.
  WeightMover::Mark last_arrival_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<const WeightReader> reader_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, NamedWeight, std::less<>> names_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const WeightPatch> patch_ ABSL_GUARDED_BY(mutex_);
  // The patch that was applied last, and a mark after its work. Until the device has done the
  // patch's work, it may read the patch's factors from host memory.
  std::shared_ptr<const WeightPatch> applied_ ABSL_GUARDED_BY(mutex_);
  WeightMover::Mark applied_until_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WeightFeed> feed_ ABSL_GUARDED_BY(mutex_);  // null: no copies are being fed
};

}  // namespace wan
