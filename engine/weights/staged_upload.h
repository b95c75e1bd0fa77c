// Copies tensors from files to a device. Its threads read files into pinned buffers; while one
// buffer is copied to the device, the next is filled, also with bytes of the next tensor. No whole
// tensor is ever in host memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/device/pinned_memory.h"
#include "engine/weights/weight_mover.h"

namespace wan {

struct UploadSettings {
  int threads = HostCopyThreads();
  // Smaller chunks would make threads wait for a lock that the driver takes to start a copy.
  int64_t chunk_bytes = int64_t{4} << 20;
  int buffers = 4;  // number for each thread
};

// Seconds, summed over all threads.
struct UploadTimes {
  double reading = 0;
  double queueing = 0;  // spent in calls that start copies
  double waiting = 0;   // spent waiting for a buffer's copy to finish
};

// Call Copy and Arrive on one thread, the one that computes.
class StagedUpload {
 public:
  // Allocates all buffers, and throws if that fails. `mover` must outlive this object.
  explicit StagedUpload(WeightMover& mover, const UploadSettings& settings = UploadSettings());
  // Drops reads that have not begun, and waits for the copies that were started.
  ~StagedUpload();
  StagedUpload(const StagedUpload&) = delete;
  StagedUpload& operator=(const StagedUpload&) = delete;

  // Queues a copy of `source` to `device` and returns at once. `device` must be kByte, contiguous
  // and as long as `source`.
  void Copy(TensorBytes source, const at::Tensor& device);

  // Blocks until every queued copy has been read from its file and started. Work queued for
  // computing after that sees the bytes. Returns a file's error, or rethrows the device's; all
  // bytes queued so far are undefined then.
  absl::Status Arrive();
  // Reads no further chunk. A running or later Arrive returns `reason`. `reason` must not be OK.
  // Does not wait. Any thread may call it.
  void Abandon(const absl::Status& reason);

  // Valid only between Arrive() and the next Copy().
  UploadTimes times() const;

 private:
  struct Item {
    TensorBytes source;
    at::Tensor device;
    WeightMover::Mark after;
  };
  struct Chunk {
    const Item* item = nullptr;
    int64_t begin = 0;
    int64_t bytes = 0;
  };
  struct Buffer {
    at::Tensor memory;
    WeightMover::Mark departure;
  };
  // The buffers and times of one thread.
  struct Lane {
    std::vector<Buffer> buffers;
    size_t next = 0;
    UploadTimes times;
  };

  void Run(Lane& lane);
  std::optional<Chunk> Take();
  absl::Status Send(const Chunk& chunk, Lane& lane);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return next_item_ < items_.size(); }
  bool HasFailed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return thrown_ != nullptr || !status_.ok();
  }

  WeightMover& mover_;
  const int64_t chunk_bytes_;
  // One lane for each thread. A lane belongs to its thread while that is busy, and to the caller
  // otherwise.
  std::vector<Lane> lanes_;

  mutable absl::Mutex mutex_;
  // Items queued since the last Arrive. A deque, because threads hold pointers to the items.
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  // The next byte to read: an item and the offset in it.
  size_t next_item_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_byte_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last member, because the threads use all others
};

}  // namespace wan
