// From a file to a device: threads of its own read it into locked buffers, and while these travel
// others are filled, across the borders of tensors. There is no copy of a whole tensor in host
// memory.
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
  // Beginning a copy takes a lock in the driver, which many threads with small chunks wait for.
  int64_t chunk_bytes = int64_t{4} << 20;
  int buffers = 4;  // of each thread
};

// What the threads did, in seconds, summed over them.
struct UploadTimes {
  double reading = 0;
  double queueing = 0;  // in the calls that begin copies
  double waiting = 0;   // for a buffer to have left
};

// Copy and Arrive are for one thread, the one that computes.
class StagedUpload {
 public:
  // Takes all buffers now, and throws what that throws. `mover` must outlive the object.
  explicit StagedUpload(WeightMover& mover, const UploadSettings& settings = UploadSettings());
  // Gives up what has not been read, and waits for what is on its way.
  ~StagedUpload();
  StagedUpload(const StagedUpload&) = delete;
  StagedUpload& operator=(const StagedUpload&) = delete;

  // Queues device := source and returns at once; `device` is kByte, contiguous and as long.
  void Copy(TensorBytes source, const at::Tensor& device);

  // Returns when all that was queued has been read; what is computed from there on finds the bytes.
  // The error of a file, or throws what the device threw: then, and from then on, the bytes of all
  // that was queued are undefined.
  absl::Status Arrive();
  // Begins no further chunk; Arrive, also one that waits, returns `reason`, which is not OK. Any
  // thread; does not wait for the chunks that are on their way.
  void Abandon(const absl::Status& reason);

  // For when Arrive has returned and nothing has been queued since.
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
  // A thread's own.
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
  // A thread's while it is busy, else the caller's.
  std::vector<Lane> lanes_;

  mutable absl::Mutex mutex_;
  // Since the last arrival; none moves or goes while a thread may read it.
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  // The first byte that no thread has taken.
  size_t next_item_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_byte_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // The first failure.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;  // last: they start when everything else is there
};

}  // namespace wan
