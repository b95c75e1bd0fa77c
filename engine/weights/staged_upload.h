// Copies tensors from files to a device. Threads of the object read files into pinned buffers.
// While one buffer is copied to the device, the next is filled, possibly with bytes of the next
// tensor. At no time is a whole tensor in host memory.
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
  // The size of a buffer. If a buffer were smaller, threads would wait for the driver's lock, which
  // each start of a copy takes.
  int64_t chunk_bytes = int64_t{4} << 20;
  int buffers = 4;  // buffers per thread
};

// All times are sums over the threads, in seconds.
struct UploadTimes {
  double reading = 0;
  double queueing = 0;  // time in calls that start copies
  double waiting = 0;   // time waiting for a buffer's copy to finish
};

// Call Copy and Arrive on the thread that computes.
class StagedUpload {
 public:
  // Allocates all buffers, and throws if that fails. `mover` must outlive this object.
  explicit StagedUpload(WeightMover& mover, const UploadSettings& settings = UploadSettings());
  // Drops reads that have not begun yet, and waits for the copies that have started.
  ~StagedUpload();
  StagedUpload(const StagedUpload&) = delete;
  StagedUpload& operator=(const StagedUpload&) = delete;

  // Queues a copy of `source` to `device` and returns at once. `device` must be a contiguous kByte
  // tensor, as long as the values of `source`.
  void Copy(TensorBytes source, const at::Tensor& device);

  // Blocks until every queued copy has been read from its file and started. Work that is queued for
  // computing afterwards sees the bytes. Returns a file's error, or rethrows the device's
  // exception; after either, all bytes queued so far are undefined.
  absl::Status Arrive();
  // Stops reading: no further chunk is read. An Arrive that is running or comes later returns
  // `reason`. `reason` must not be OK. The call does not wait. Any thread may call Abandon.
  void Abandon(const absl::Status& reason);

  // Returns the seconds of this upload. Valid only between Arrive() and the next Copy().
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
  // A lane has the buffers and the times of one thread.
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
  // One lane per thread. Only its thread uses a lane while the thread is busy; at other times the
  // caller may use the lane.
  std::vector<Lane> lanes_;

  mutable absl::Mutex mutex_;
  // The items that were queued since the last Arrive. The items are in a deque, because threads
  // hold pointers to them.
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  // Where the next byte to read is: an item and the offset in it.
  size_t next_item_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_byte_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last member, because its threads use all others
};

}  // namespace wan
