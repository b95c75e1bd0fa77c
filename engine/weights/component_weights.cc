#include "engine/weights/component_weights.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/device/torch_errors.h"

namespace wan {
namespace {

// Alignment of tensors in bytes, sufficient for the widest loads of kernels and libraries.
constexpr int64_t kAlignment = 512;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status StoppedError() {
  return absl::CancelledError("the moving of weights was stopped on request");
}

// Returns a tensor's memory as a tensor of bytes.
at::Tensor BytesOf(const c10::Storage& storage) {
  return at::from_blob(storage.mutable_data(), {static_cast<int64_t>(storage.nbytes())},
                       at::TensorOptions(storage.device()).dtype(at::kByte));
}

}  // namespace

ComponentWeights::ComponentWeights(std::unique_ptr<WeightMover> mover, Home home,
                                   std::shared_ptr<const WeightSource> source,
                                   const FeedLimits& feed_limits)
    : mover_(std::move(mover)),
      home_(home),
      source_(std::move(source)),
      feed_limits_(feed_limits),
      state_(home == Home::kDevice ? State::kUp : State::kParked),
      groups_(1) {
  TORCH_CHECK(home != Home::kDisk || source_ != nullptr, "weights on disk need their source");
}

ComponentWeights::~ComponentWeights() {
  Hold(-device_bytes_);
  const absl::MutexLock lock(&mutex_);
  EndFeed();
  // After a stopped job, copies may be running for which no computation waits.
  mover_->WaitFor(last_arrival_);
  mover_->WaitFor(applied_until_);
}

void ComponentWeights::BeginGroup() {
  const absl::MutexLock lock(&mutex_);
  CloseGroup();
  groups_.emplace_back();
}

void ComponentWeights::Add(const at::Tensor& tensor) {
  const absl::MutexLock lock(&mutex_);
  Group& group = groups_.back();
  group.tensors.push_back({tensor.storage(), group.bytes});
  const int64_t bytes = Aligned(static_cast<int64_t>(tensor.storage().nbytes()));
  group.bytes += bytes;
  if (state_ == State::kUp) Hold(bytes);
}

void ComponentWeights::Name(std::string_view name, const at::Tensor& view) {
  const absl::MutexLock lock(&mutex_);
  names_.emplace(name, NamedWeight{.group = groups_.size() - 1, .tensor = view});
}

void ComponentWeights::Name(std::string_view name, const RoundedRows& rows, at::ScalarType dtype) {
  const absl::MutexLock lock(&mutex_);
  names_.emplace(name,
                 NamedWeight{.group = groups_.size() - 1, .rounded = rows, .rounded_from = dtype});
}

void ComponentWeights::FinishBuilding() {
  const absl::MutexLock lock(&mutex_);
  CloseGroup();
}

void ComponentWeights::SetReader(std::unique_ptr<const WeightReader> reader) {
  const absl::MutexLock lock(&mutex_);
  reader_ = std::move(reader);
}

void ComponentWeights::CloseGroup() {
  if (home_ == Home::kDevice) return;
  Group& group = groups_.back();
  if (home_ == Home::kHost) CopyToHost(group, {});
  Unbind(group);
}

void ComponentWeights::BringUp(const std::stop_token& stop) {
  const absl::MutexLock lock(&mutex_);
  if (state_ == State::kUp) {
    // A job that was stopped earlier may have left incomplete groups.
    EndFeed();
    std::vector<size_t> torn;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].torn) torn.push_back(i);
    }
    if (!torn.empty()) Restore(torn, stop);
    return;
  }
  if (state_ == State::kStreaming) ParkLocked(stop);
  try {
    std::vector<at::Tensor> memory;
    for (const Group& group : groups_) memory.push_back(mover_->AllocateDevice(group.bytes));
    for (const at::Tensor& block : memory) Hold(static_cast<int64_t>(block.nbytes()));
    const WeightMover::Mark after = mover_->MarkCompute();
    std::vector<size_t> copied;
    std::vector<size_t> unread;
    for (size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].device = memory[i];
      Bind(groups_[i], memory[i]);
      (groups_[i].host.defined() ? copied : unread).push_back(i);
    }
    Feed(copied, after, stop);
    feed_->Check();
    if (!unread.empty()) ReadBase(unread, stop);
  } catch (...) {
    Release();
    throw;
  }
  state_ = State::kUp;
}

void ComponentWeights::Stream(const std::stop_token& stop) {
  const absl::MutexLock lock(&mutex_);
  if (state_ == State::kStreaming) return;
  KeepHostCopyLocked(stop);
  if (state_ == State::kUp) ParkLocked(stop);
  try {
    int64_t largest = 0;
    for (size_t i = 1; i < groups_.size(); ++i) largest = std::max(largest, groups_[i].bytes);
    groups_[0].device = mover_->AllocateDevice(groups_[0].bytes);
    for (Slot& slot : slots_) slot.memory = mover_->AllocateDevice(largest);
    Hold(groups_[0].bytes + 2 * largest);
    Fetch(groups_[0], groups_[0].device, mover_->MarkCompute());
  } catch (...) {
    Release();
    throw;
  }
  state_ = State::kStreaming;
}

void ComponentWeights::Park(const std::stop_token& stop) {
  const absl::MutexLock lock(&mutex_);
  if (state_ != State::kParked) ParkLocked(stop);
}

void ComponentWeights::Drop() {
  const absl::MutexLock lock(&mutex_);
  if (state_ == State::kParked) return;
  if (reader_ == nullptr) {
    ParkLocked({});
  } else {
    Release();
  }
}

void ComponentWeights::KeepHostCopyLocked(const std::stop_token& stop) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (group.host.defined()) continue;
    if (stop.stop_requested()) throw StatusException(StoppedError());
    const bool is_up = group.bound;
    at::Tensor memory;
    if (!is_up) {
      memory = mover_->AllocateDevice(group.bytes);
      Bind(group, memory);
    }
    const absl::Cleanup unbind = [&] {
      if (!is_up) Unbind(group);
    };
    if (!is_up || group.patch != nullptr || group.torn) ReadBase({&i, 1}, stop);
    CopyToHost(group, stop);
  }
}

void ComponentWeights::ReadBase(std::span<const size_t> groups, const std::stop_token& stop) {
  TORCH_CHECK(reader_ != nullptr, "weights that nobody can read were dropped");
  for (const size_t index : groups) groups_[index].torn = true;
  const absl::Status status = reader_->Read(groups, *mover_, stop);
  if (!status.ok()) throw StatusException(status);
  for (const size_t index : groups) {
    groups_[index].torn = false;
    groups_[index].patch = nullptr;
  }
}

void ComponentWeights::ParkLocked(const std::stop_token& stop) {
  // Make the copies first: if host memory runs out, the weights stay where they are.
  KeepHostCopyLocked(stop);
  Release();
}

void ComponentWeights::Release() {
  // The freed memory may be reused soon, so no running copy may write to it afterwards.
  EndFeed();
  mover_->ComputeAfter(last_arrival_);
  for (Group& group : groups_) {
    group.arrival = nullptr;
    group.torn = false;
    Unbind(group);
    group.device.reset();
  }
  slots_ = {};
  Hold(-device_bytes_);
  state_ = State::kParked;
}

bool ComponentWeights::IsUp() const {
  const absl::MutexLock lock(&mutex_);
  return state_ == State::kUp;
}

WeightSizes ComponentWeights::Sizes() const {
  const absl::MutexLock lock(&mutex_);
  WeightSizes sizes;
  sizes.base = groups_.front().bytes;
  for (const Group& group : groups_) sizes.total += group.bytes;
  for (size_t i = 1; i < groups_.size(); ++i) {
    sizes.largest_group = std::max(sizes.largest_group, groups_[i].bytes);
  }
  return sizes;
}

std::optional<NamedWeight> ComponentWeights::Find(std::string_view name) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

void ComponentWeights::KeepHostCopy(const std::stop_token& stop) {
  const absl::MutexLock lock(&mutex_);
  KeepHostCopyLocked(stop);
}

void ComponentWeights::FreeHostCopy() {
  const absl::MutexLock lock(&mutex_);
  for (Group& group : groups_) {
    const bool is_elsewhere =
        group.bound ? group.patch == nullptr && !group.torn : reader_ != nullptr;
    if (!group.host.defined() || !is_elsewhere) continue;
    group.host.reset();
    host_bytes_ -= group.bytes;
  }
}

bool ComponentWeights::SetPatch(std::shared_ptr<const WeightPatch> patch,
                                const std::stop_token& stop) {
  const absl::MutexLock lock(&mutex_);
  patch_ = std::move(patch);
  if (state_ == State::kParked) return false;
  EndFeed();
  bool changes = false;
  std::vector<size_t> to_restore;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].bound) continue;
    if (MustRestore(i)) to_restore.push_back(i);
    changes = changes || MustRestore(i) || groups_[i].patch != PatchOf(i);
  }
  if (!to_restore.empty()) Restore(to_restore, stop);
  return changes;
}

absl::Status ComponentWeights::FinishPatch(const WorkGate& gate) {
  const absl::MutexLock lock(&mutex_);
  if (state_ != State::kUp) return absl::OkStatus();
  try {
    for (size_t i = 0; i < groups_.size(); ++i) {
      MakeReady(i);
      if (absl::Status status = gate.Pass(); !status.ok()) return status;
    }
  } catch (const StatusException& stopped) {
    return stopped.status();
  }
  mover_->WaitFor(mover_->MarkCompute());
  return absl::OkStatus();
}

void ComponentWeights::Use(size_t group, size_t next) {
  const absl::MutexLock lock(&mutex_);
  TORCH_CHECK(state_ != State::kParked, "weights are used while they are parked");
  MakeReady(0);
  if (state_ == State::kStreaming) {
    // All work that reads the slots was queued before this mark, so the next copies into the slots
    // wait for it.
    const WeightMover::Mark before = mover_->MarkCompute();
    FetchIntoSlot(group, group, before);
    MakeReady(group);
    FetchIntoSlot(next, group, before);
  } else {
    MakeReady(group);
  }
}

void ComponentWeights::UseAll() {
  const absl::MutexLock lock(&mutex_);
  TORCH_CHECK(state_ == State::kUp, "weights are used while not all of them are up");
  for (size_t i = 0; i < groups_.size(); ++i) MakeReady(i);
}

std::shared_ptr<const WeightPatch> ComponentWeights::PatchOf(size_t group) const {
  return patch_ != nullptr && patch_->Touches(group) ? patch_ : nullptr;
}

void ComponentWeights::MakeReady(size_t index) {
  Group& group = groups_[index];
  // Restores only this group, because SetPatch has already restored the other groups.
  if (group.torn) {
    EndFeed();
    Restore({&index, 1}, {});
  }
  Arrive(index);
  std::shared_ptr<const WeightPatch> wanted = PatchOf(index);
  if (group.patch == wanted) return;
  // Make a copy now, from which the unpatched bits are restored when the patch is removed.
  if (!group.host.defined() && reader_ == nullptr) CopyToHost(group, {});
  group.torn = true;
  Apply(wanted, index);
  group.torn = false;
  group.patch = std::move(wanted);
}

void ComponentWeights::Apply(const std::shared_ptr<const WeightPatch>& patch, size_t group) {
  if (applied_ != patch) {
    mover_->WaitFor(applied_until_);
    applied_ = patch;
  }
  // The mark is needed even if the patch throws, because work that the patch has already queued
  // goes on.
  const absl::Cleanup mark = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    try {
      applied_until_ = mover_->MarkCompute();
    } catch (const c10::Error&) {
      // Ignore the error: the device is lost and no longer reads memory.
    }
  };
  patch->Apply(group, *mover_);
}

bool ComponentWeights::MustRestore(size_t index) const {
  const Group& group = groups_[index];
  return group.torn || (group.patch != nullptr && group.patch != PatchOf(index));
}

void ComponentWeights::Restore(std::span<const size_t> groups, const std::stop_token& stop) {
  std::vector<size_t> copied;
  std::vector<size_t> unread;
  for (const size_t index : groups) {
    Group& group = groups_[index];
    (group.host.defined() ? copied : unread).push_back(index);
    if (!group.host.defined()) continue;
    group.patch = nullptr;
    group.torn = false;
  }
  if (!copied.empty()) Feed(copied, mover_->MarkCompute(), stop);
  if (!unread.empty()) ReadBase(unread, stop);
}

void ComponentWeights::CopyToHost(Group& group, const std::stop_token& stop) {
  const at::Tensor host = mover_->AllocateHost(group.bytes);
  for (const Tensor& tensor : group.tensors) {
    if (stop.stop_requested()) throw StatusException(StoppedError());
    const at::Tensor bytes = BytesOf(tensor.storage);
    mover_->CopyToHost(bytes, host.narrow(0, tensor.offset, bytes.numel()));
  }
  group.host = host;
  host_bytes_ += group.bytes;
}

void ComponentWeights::Feed(std::span<const size_t> groups, const WeightMover::Mark& after,
                            const std::stop_token& stop) {
  std::vector<WeightFeed::Copy> copies;
  for (const size_t index : groups) {
    const Group& group = groups_[index];
    if (group.device.defined()) {
      copies.push_back({index, group.host, group.device.narrow(0, 0, group.bytes)});
      continue;
    }
    // If the group has no block of memory, its tensors own their memory or use a slot.
    for (const Tensor& tensor : group.tensors) {
      const at::Tensor device = BytesOf(tensor.storage);
      copies.push_back({index, group.host.narrow(0, tensor.offset, device.numel()), device});
    }
  }
  feed_ = std::make_unique<WeightFeed>(*mover_, std::move(copies), after, stop, feed_limits_);
  for (const size_t index : groups) groups_[index].fed = true;
}

void ComponentWeights::EndFeed() {
  if (feed_ == nullptr) return;
  if (WeightMover::Mark last = feed_->End(); last != nullptr) last_arrival_ = std::move(last);
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].fed) continue;
    groups_[i].fed = false;
    try {
      groups_[i].arrival = feed_->Await(i);
    } catch (...) {
      groups_[i].torn = true;
    }
  }
  feed_ = nullptr;
}

void ComponentWeights::Fetch(Group& group, const at::Tensor& device,
                             const WeightMover::Mark& after) {
  if (group.bytes > 0) {
    group.arrival = mover_->CopyToDevice(group.host, device.narrow(0, 0, group.bytes), after);
    last_arrival_ = group.arrival;
  }
  Bind(group, device);
}

void ComponentWeights::Bind(Group& group, const at::Tensor& device) {
  ++placement_;
  group.patch = nullptr;
  group.torn = false;
  auto* const base = static_cast<std::byte*>(device.mutable_data_ptr());
  for (const Tensor& tensor : group.tensors) {
    tensor.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
        at::DataPtr(base + tensor.offset, tensor.storage.device()));
  }
  group.bound = true;
}

void ComponentWeights::Unbind(Group& group) {
  ++placement_;
  for (const Tensor& tensor : group.tensors) {
    tensor.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
        at::DataPtr(nullptr, tensor.storage.device()));
  }
  group.bound = false;
}

void ComponentWeights::Arrive(size_t index) {
  Group& group = groups_[index];
  if (group.fed) {
    group.arrival = feed_->Await(index);
    group.fed = false;
  }
  mover_->ComputeAfter(group.arrival);
  group.arrival = nullptr;
}

void ComponentWeights::FetchIntoSlot(size_t group, size_t keep, const WeightMover::Mark& after) {
  if (group == 0) return;  // the first group is always on the device
  for (const Slot& slot : slots_) {
    if (slot.group == group) return;
  }
  Slot& slot = slots_[0].group == keep ? slots_[1] : slots_[0];
  if (slot.group != Slot::kNone) {
    // The slot's group may have been fetched but never used.
    Arrive(slot.group);
    Unbind(groups_[slot.group]);
  }
  slot.group = group;
  Fetch(groups_[group], slot.memory, after);
}

}  // namespace wan
