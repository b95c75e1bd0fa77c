// Moves the weights of one component, in groups (a transformer's blocks), between the device, host
// memory and the checkpoint's files. The component's tensors stay the same objects; only the memory
// behind them changes.
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
#include "engine/weights/weight_feed.h"
#include "engine/weights/weight_mover.h"
#include "engine/weights/weight_patch.h"
#include "engine/weights/weight_reader.h"

namespace wan {

// The sizes of a component's groups, in bytes of device memory.
struct WeightSizes {
  int64_t total = 0;
  int64_t base = 0;           // the first group, which is never streamed
  int64_t largest_group = 0;  // the largest of the other groups
};

// Where the component keeps one tensor of the checkpoint.
struct NamedWeight {
  size_t group = 0;
  at::Tensor
      tensor;  // has the checkpoint's shape; a view if the component packs several tensors in one
};

// Thread-safe. Exceptions of LibTorch pass through, for example c10::OutOfMemoryError if the device
// has no room; the weights are parked then. If reading weights again fails, StatusException is
// thrown.
//
// Functions that move weights take a stop token. After a stop request they throw StatusException
// with CANCELLED, and at most FeedLimits::window_bytes of copies still occupy the device. A later
// BringUp, Stream or SetPatch makes the weights usable again.
class ComponentWeights {
 public:
  // Where a group goes once it is loaded. kDisk frees its memory and keeps no copy.
  enum class Home { kDevice, kHost, kDisk };

  // The weights are loaded from `source`. The object keeps it, so that weights can be dropped and
  // read again. If it is null, weights can never be dropped, and Home::kDisk is not allowed.
  ComponentWeights(std::unique_ptr<WeightMover> mover, Home home,
                   std::shared_ptr<const WeightSource> source = nullptr,
                   const FeedLimits& feed_limits = {});
  // Waits for running copies, because it frees their memory.
  ~ComponentWeights();
  ComponentWeights(const ComponentWeights&) = delete;
  ComponentWeights& operator=(const ComponentWeights&) = delete;

  // The mover that copies these weights.
  WeightMover& mover() { return *mover_; }
  Home home() const { return home_; }
  const std::shared_ptr<const WeightSource>& source() const { return source_; }

  // From now on `held` includes this object's device memory. Null: only DeviceBytes() counts it.
  // Call it at most once, before other threads use the object.
  void CountIn(std::shared_ptr<HeldBytes> held) {
    held_ = std::move(held);
    if (held_ != nullptr) held_->Add(device_bytes_);
  }

  // --- Building. Called by the component's loader.

  // Begins the next group; tensors added after this belong to it. The first group needs no call.
  void BeginGroup();
  // Adds a tensor to the group. The tensor must cover its storage and share it only with views of
  // itself, and its values must be complete when the group ends.
  void Add(const at::Tensor& tensor);
  // Records that `view` (a tensor of this group, or a part of one) holds the checkpoint's tensor
  // `name`.
  void Name(std::string_view name, const at::Tensor& view);
  // Ends the last group.
  void FinishBuilding();
  // Sets the reader that reads dropped groups again; without one they cannot be dropped.
  void SetReader(std::unique_ptr<const WeightReader> reader);

  // --- Moving. Called by the code that decides where weights are.

  // Starts to copy all groups that are not on the device, in order, and returns at once. A thread
  // does the copying; Use throws if a stop request ended it. Groups without a copy in host memory
  // are read from the checkpoint before the call returns.
  void BringUp(const std::stop_token& stop = {});
  // Keeps three groups on the device: the first, the one in use and the next one. The first call
  // makes a copy in host memory.
  void Stream(const std::stop_token& stop = {});
  // Moves the weights to host memory; their device memory is free when it returns. The first call
  // copies them; if it is stopped, the weights stay where they were.
  void Park(const std::stop_token& stop = {});
  // Frees the device's memory without making a copy in host memory: groups without a copy are read
  // again when they are needed. Same as Park if no reader was set.
  void Drop();
  // Whether all groups are on the device or being copied there.
  bool IsUp() const;
  // A number that changes whenever a tensor's memory does. An address of a weight stays valid as
  // long as this number is the same. Patches change weights in place and do not change this number.
  uint64_t Placement() const { return placement_; }
  WeightSizes Sizes() const;
  // The device memory held now, in bytes. Does not wait for a move.
  int64_t DeviceBytes() const { return device_bytes_; }
  // Bytes of the weights' copies in host memory; never shrinks. Does not wait for a move.
  int64_t HostBytes() const { return host_bytes_; }

  // --- Patching. Called by the code that chooses the LoRAs. A group is patched on the device when
  // it is used for the first time after it has arrived. The unpatched bits stay in host memory or
  // on disk; they are restored before another patch is applied.

  // Returns nullopt if the component did not load a tensor of this name.
  std::optional<NamedWeight> Find(std::string_view name) const;
  // Makes the missing copies in host memory now, so that no later Park or SetPatch has to. A group
  // that is on neither side is read from the checkpoint; one group at a time.
  void KeepHostCopy(const std::stop_token& stop = {});
  // Replaces the current patch by `patch`; null removes it. Re-fetches the groups on the device
  // that must change: from host memory asynchronously, as BringUp does, or from the checkpoint
  // before it returns. Returns whether any group had to change.
  bool SetPatch(std::shared_ptr<const WeightPatch> patch, const std::stop_token& stop = {});
  // Patches all groups on the device now instead of at their first use, and returns when the device
  // has done it. CANCELLED after a stop request, because every group passes `gate`; the remaining
  // groups are patched when they are used.
  absl::Status FinishPatch(const WorkGate& gate = {});

  // --- Using. Called by the component.

  // Work that is queued until the next Use may read `group` and the first group. `next` is the
  // group that will be used after `group`; if weights are streamed, it is fetched meanwhile. Waits
  // until the group's copy is queued. Throws c10::Error if the weights are parked.
  void Use(size_t group, size_t next);
  // Does the same for all groups at once. Only for components that are never streamed.
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
    bool bound = true;  // whether its tensors have memory
    WeightMover::Mark arrival;
    bool fed = false;  // feed_ is copying it; `arrival` is set once the copy is queued
    // The patch that the memory holds; null: none. Torn: a patch or a copy did not finish, so the
    // values are undefined.
    std::shared_ptr<const WeightPatch> patch;
    bool torn = false;
  };
  // Device memory for one group at a time.
  struct Slot {
    static constexpr size_t kNone = ~size_t{0};
    at::Tensor memory;
    size_t group = kNone;
  };
  enum class State { kUp, kStreaming, kParked };

  // Adds `bytes` to the device memory held.
  void Hold(int64_t bytes) {
    device_bytes_ += bytes;
    if (held_ != nullptr) held_->Add(bytes);
  }
  void CloseGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyToHost(Group& group, const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts feed_, which copies the groups from host memory. They must be bound.
  void Feed(std::span<const size_t> groups, const WeightMover::Mark& after,
            const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks groups whose copies are not queued yet as torn.
  void EndFeed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fetch(Group& group, const at::Tensor& device, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Bind(Group& group, const at::Tensor& device);
  void Unbind(Group& group);
  void Arrive(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the group's copy and applies the wanted patch.
  void MakeReady(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const WeightPatch> PatchOf(size_t group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues the patch's work on a group, and keeps the patch until the device has done it.
  void Apply(const std::shared_ptr<const WeightPatch>& patch, size_t group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the group is torn or holds a patch that is no longer wanted.
  bool MustRestore(size_t group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Restores the unpatched bits from host memory, or reads them from the checkpoint. Call it while
  // feed_ is idle.
  void Restore(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FetchIntoSlot(size_t group, size_t keep, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The groups must have device memory. They hold the unpatched bits when this returns, and are
  // torn if it throws.
  void ReadBase(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepHostCopyLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ParkLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees the device's memory.
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
  // A mark after the last copy to the device; copies run one after the other.
  WeightMover::Mark last_arrival_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<const WeightReader> reader_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, NamedWeight, std::less<>> names_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const WeightPatch> patch_ ABSL_GUARDED_BY(mutex_);
  // The last applied patch, and a mark after its work. Until that work is done, the device may read
  // the patch's factors from host memory.
  std::shared_ptr<const WeightPatch> applied_ ABSL_GUARDED_BY(mutex_);
  WeightMover::Mark applied_until_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WeightFeed> feed_ ABSL_GUARDED_BY(mutex_);  // null: idle
};

}  // namespace wan
