#include "engine/weights/staged_upload.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace wan {
namespace {

// A stopwatch: each call adds the seconds since the previous call (or since construction) to a sum.
class Stopwatch {
 public:
  void AddTo(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

StagedUpload::StagedUpload(WeightMover& mover, const UploadSettings& settings)
    : mover_(mover), chunk_bytes_(settings.chunk_bytes), lanes_(std::max(settings.threads, 1)) {
  const auto buffers = static_cast<int64_t>(lanes_.size()) * settings.buffers;
  const at::Tensor memory = mover_.AllocateHost(buffers * chunk_bytes_);
  int64_t begin = 0;
  for (Lane& lane : lanes_) {
    for (int i = 0; i < settings.buffers; ++i, begin += chunk_bytes_) {
      lane.buffers.push_back({memory.narrow(0, begin, chunk_bytes_), nullptr});
    }
  }
  for (Lane& lane : lanes_) threads_.emplace_back([this, &lane] { Run(lane); });
}

StagedUpload::~StagedUpload() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  for (const Lane& lane : lanes_) {
    for (const Buffer& buffer : lane.buffers) mover_.WaitFor(buffer.departure);
  }
}

void StagedUpload::Copy(TensorBytes source, const at::Tensor& device) {
  if (source.size() == 0) return;
  WeightMover::Mark after = mover_.MarkCompute();
  const absl::MutexLock lock(&mutex_);
  items_.push_back({std::move(source), device, std::move(after)});
}

absl::Status StagedUpload::Arrive() {
  const absl::MutexLock lock(&mutex_);
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return busy_ == 0 && (!HasWork() || HasFailed());
  };
  mutex_.Await(absl::Condition(&is_idle));
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  if (!status_.ok()) return status_;
  for (const Lane& lane : lanes_) {
    for (const Buffer& buffer : lane.buffers) mover_.ComputeAfter(buffer.departure);
  }
  items_.clear();
  next_item_ = 0;
  return absl::OkStatus();
}

void StagedUpload::Abandon(const absl::Status& reason) {
  const absl::MutexLock lock(&mutex_);
  status_.Update(reason);
}

UploadTimes StagedUpload::times() const {
  const absl::MutexLock lock(&mutex_);
  UploadTimes sum;
  for (const Lane& lane : lanes_) {
    sum.reading += lane.times.reading;
    sum.queueing += lane.times.queueing;
    sum.waiting += lane.times.waiting;
  }
  return sum;
}

void StagedUpload::Run(Lane& lane) {
  const c10::InferenceMode inference;
  while (const std::optional<Chunk> chunk = Take()) {
    absl::Status status;
    std::exception_ptr thrown;
    try {
      status = Send(*chunk, lane);
    } catch (...) {
      thrown = std::current_exception();
    }
    const absl::MutexLock lock(&mutex_);
    status_.Update(status);
    if (thrown_ == nullptr) thrown_ = thrown;
    --busy_;
  }
}

std::optional<StagedUpload::Chunk> StagedUpload::Take() {
  const absl::MutexLock lock(&mutex_);
  const auto is_called = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || (HasWork() && !HasFailed());
  };
  mutex_.Await(absl::Condition(&is_called));
  if (ending_) return std::nullopt;
  const Item& item = items_[next_item_];
  const auto size = static_cast<int64_t>(item.source.size());
  const Chunk chunk = {&item, next_byte_, std::min(chunk_bytes_, size - next_byte_)};
  next_byte_ += chunk.bytes;
  if (next_byte_ == size) {
    ++next_item_;
    next_byte_ = 0;
  }
  ++busy_;
  return chunk;
}

absl::Status StagedUpload::Send(const Chunk& chunk, Lane& lane) {
  Stopwatch watch;
  Buffer& buffer = lane.buffers[lane.next];
  lane.next = (lane.next + 1) % lane.buffers.size();
  mover_.WaitFor(buffer.departure);
  watch.AddTo(lane.times.waiting);

  const std::span<std::byte> memory(static_cast<std::byte*>(buffer.memory.mutable_data_ptr()),
                                    static_cast<size_t>(chunk.bytes));
  if (absl::Status status = chunk.item->source.Read(static_cast<size_t>(chunk.begin), memory);
      !status.ok()) {
    return status;
  }
  watch.AddTo(lane.times.reading);

  buffer.departure = mover_.CopyToDevice(buffer.memory.narrow(0, 0, chunk.bytes),
                                         chunk.item->device.narrow(0, chunk.begin, chunk.bytes),
                                         chunk.item->after);
  watch.AddTo(lane.times.queueing);
  return absl::OkStatus();
}

}  // namespace wan
