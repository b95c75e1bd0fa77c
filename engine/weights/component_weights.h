// The weights of one component in groups (a transformer's blocks), and where they are: on the
// device, in host memory, only in the checkpoint's files, or on their way. Tensors of a component
// keep their identity through all of it: what moves is the memory behind them.
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
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/device/work_gate.h"
#include "engine/weights/weight_feed.h"
#include "engine/weights/weight_mover.h"
#include "engine/weights/weight_patch.h"
#include "engine/weights/weight_reader.h"

namespace wan {

// What the groups of a component weigh, in bytes of the device's memory.
struct WeightSizes {
  int64_t total = 0;
  int64_t base = 0;           // the first group, needed all the time
  int64_t largest_group = 0;  // of the others
};

// A tensor of a checkpoint where the component has it.
struct NamedWeight {
  size_t group = 0;
  at::Tensor tensor;  // of the checkpoint's shape; a view, if the component packs several in one
};

// Thread-safe. What LibTorch throws passes through (c10::OutOfMemoryError where the device has no
// room); the weights are parked then. Weights that cannot be read again throw StatusException.
//
// Functions that move weights take a stop token. After a stop request they throw StatusException,
// CANCELLED, and what they queued keeps the device for FeedLimits::window_bytes at most. The
// weights can be used again after the next BringUp, Stream or SetPatch, whichever brings them.
class ComponentWeights {
 public:
  // Where a group goes when all of it is loaded: kDisk gives its memory back and keeps no copy.
  enum class Home { kDevice, kHost, kDisk };

  // `source` is where the weights are loaded from; it is kept, so that they can be dropped and read
  // again. Null: they cannot, and Home::kDisk is not allowed.
  ComponentWeights(std::unique_ptr<WeightMover> mover, Home home,
                   std::shared_ptr<const WeightSource> source = nullptr,
                   const FeedLimits& feed_limits = {});
  // Waits for what is on its way: its memory ends here.
  ~ComponentWeights();
  ComponentWeights(const ComponentWeights&) = delete;
  ComponentWeights& operator=(const ComponentWeights&) = delete;

  // What its weights travel with.
  WeightMover& mover() { return *mover_; }
  Home home() const { return home_; }
  const std::shared_ptr<const WeightSource>& source() const { return source_; }

  // --- Building, by the component's loader.

  // Tensors added from here on are of the next group. The first group needs no call.
  void BeginGroup();
  // `tensor` covers its storage, which it shares with none but views of itself, and is complete
  // when the group ends.
  void Add(const at::Tensor& tensor);
  // `view` is (a part of) a tensor of this group and holds what the checkpoint calls `name`.
  void Name(std::string_view name, const at::Tensor& view);
  // Ends the last group.
  void FinishBuilding();
  // `reader` fills the groups as the loader did; from here on they may be dropped.
  void SetReader(std::unique_ptr<const WeightReader> reader);

  // --- Moving, by whoever decides where weights are.

  // Begins to bring what is not on the device yet, in the order of the groups, and returns at once:
  // a thread goes on with it, and Use throws if it was stopped. Groups that have no copy in host
  // memory are read from the checkpoint before the call returns.
  void BringUp(const std::stop_token& stop = {});
  // Only the first group stays on the device; of the others the one in use and the next. The first
  // time costs a copy in host memory.
  void Stream(const std::stop_token& stop = {});
  // To host memory; the device's is free when the call returns. The first time costs a copy; a stop
  // request while it is made leaves the weights where they were.
  void Park(const std::stop_token& stop = {});
  // Gives the device's memory back without making a copy in host memory: what has none there is
  // read again. The same as Park where the weights cannot be read again.
  void Drop();
  // True if all of it is on the device or on its way.
  bool IsUp() const;
  WeightSizes Sizes() const;
  // Device memory held now, in bytes. Any thread; does not wait for a move.
  int64_t DeviceBytes() const { return device_bytes_; }
  // Host memory that copies of the weights hold, in bytes; it never shrinks. Any thread; does not
  // wait for a move.
  int64_t HostBytes() const { return host_bytes_; }

  // --- Patching, by whoever decides what the weights are. Groups are patched on the device, when
  // they have arrived and are used for the first time; the base's bits stay in host memory, and a
  // group of another patch or none begins with them.

  // Nullopt for a name that the component did not load.
  std::optional<NamedWeight> Find(std::string_view name) const;
  // What is not in host memory yet gets a copy there, so that no later Park or SetPatch has to make
  // it. What is not on the device either is read, one group at a time.
  void KeepHostCopy(const std::stop_token& stop = {});
  // From here on the weights are the base's with `patch`, or without if it is null. Returns whether
  // something on the device has to change. That is on its way from host memory then, as with
  // BringUp, or was read.
  bool SetPatch(std::shared_ptr<const WeightPatch> patch, const std::stop_token& stop = {});
  // Patches everything that is up, which Use would do later, and returns when the device has done
  // it. CANCELLED after a stop request, for which `gate` is passed after every group; the groups
  // that are left are patched when they are used.
  absl::Status FinishPatch(const WorkGate& gate = {});

  // --- Using, by the component.

  // What is computed from here on, until Use of another group, may read `group`; the first group
  // may be read all the time between. `next` is the group that will be used then, and is fetched
  // meanwhile if weights are streamed. Waits until the group's copy is queued. Throws c10::Error if
  // the weights are parked.
  void Use(size_t group, size_t next);
  // The same for all groups at once; for a component that is never streamed.
  void UseAll();

 private:
  struct Tensor {
    c10::Storage storage;
    int64_t offset = 0;  // in the group's memory
  };
  struct Group {
    std::vector<Tensor> tensors;
    int64_t bytes = 0;
    at::Tensor host;    // undefined until it was parked once; with a reader perhaps for ever
    at::Tensor device;  // undefined while its tensors have memory of their own, or none
    bool bound = true;  // its tensors have memory
    WeightMover::Mark arrival;
    bool fed = false;  // feed_ brings it; its arrival is known when that has queued it
    // What the memory holds: the base's bits if null. Torn: neither, since a patch or a copy did
    // not end.
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

  void CloseGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyToHost(Group& group, const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings the groups, which are bound, from host memory.
  void Feed(std::span<const size_t> groups, const WeightMover::Mark& after,
            const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is being fed and is not queued yet is torn from here on.
  void EndFeed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fetch(Group& group, const at::Tensor& device, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Bind(Group& group, const at::Tensor& device);
  static void Unbind(Group& group);
  void Arrive(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Arrived, and patched as it is wanted.
  void MakeReady(size_t group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const WeightPatch> PatchOf(size_t group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues the patch's work on a group, and keeps the patch until the device has done it.
  void Apply(const std::shared_ptr<const WeightPatch>& patch, size_t group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the group is not the base's and another patch than the wanted one is on it.
  bool MustRestore(size_t group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Brings the base's bits from host memory, or reads them. Nothing may be being fed.
  void Restore(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FetchIntoSlot(size_t group, size_t keep, const WeightMover::Mark& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The groups must have memory on the device; they hold the base's bits when this returns, and are
  // torn if it throws.
  void ReadBase(std::span<const size_t> groups, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepHostCopyLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ParkLocked(const std::stop_token& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the device's memory back.
  void Release() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<WeightMover> mover_;
  std::atomic<int64_t> host_bytes_ = 0;
  std::atomic<int64_t> device_bytes_ = 0;
  const Home home_;
  const std::shared_ptr<const WeightSource> source_;
  const FeedLimits feed_limits_;

  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  std::vector<Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::array<Slot, 2> slots_ ABSL_GUARDED_BY(mutex_);
  // Of the copies to the device, which follow one another.
  WeightMover::Mark last_arrival_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<const WeightReader> reader_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, NamedWeight, std::less<>> names_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const WeightPatch> patch_ ABSL_GUARDED_BY(mutex_);
  // The last patch that was applied, and the point in the computing queue behind it: until the
  // device is past that, it reads the patch's factors from host memory.
  std::shared_ptr<const WeightPatch> applied_ ABSL_GUARDED_BY(mutex_);
  WeightMover::Mark applied_until_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WeightFeed> feed_ ABSL_GUARDED_BY(mutex_);  // null: nothing is being fed
};

}  // namespace wan
