// Queues copies of weights to a device piece by piece, so that few bytes are still queued when a
// stop is requested.
//
//   WeightFeed feed(mover, copies, mover.MarkCompute(), stop, {});
//   mover.ComputeAfter(feed.Await(group));  // for each group, before it is computed with
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/weights/weight_mover.h"

namespace wan {

// Queued copies cannot be cancelled, and copying a whole expert occupies the link for a second. The
// default window takes 0.02 s on a link of 50 GB/s and 0.1 s on one of 10 GB/s. The host queues a
// piece in microseconds, so the link does not run out of work.
struct FeedLimits {
  int64_t piece_bytes = int64_t{64} << 20;
  int64_t window_bytes = int64_t{1} << 30;  // most bytes queued but not yet copied
};

// The constructor queues the first window; the feed's own thread queues the rest as fast as the
// device takes it. If the device is the host, the constructor makes all copies. Call all functions
// on the owner's thread.
class WeightFeed {
 public:
  struct Copy {
    size_t group = 0;
    at::Tensor host;    // kByte
    at::Tensor device;  // kByte, of the same size
  };

  // Makes the copies in order, once the device has passed `after`. Copies of one group must be
  // adjacent. `mover` must outlive this object, and the tensors must live until the queued copies
  // are done. After a stop request no further piece is queued.
  WeightFeed(WeightMover& mover, std::vector<Copy> copies, WeightMover::Mark after,
             std::stop_token stop, const FeedLimits& limits);
  // Calls End(). Does not wait for the device.
  ~WeightFeed();
  WeightFeed(const WeightFeed&) = delete;
  WeightFeed& operator=(const WeightFeed&) = delete;

  // Waits until all copies of the group are queued, and returns the mark after the last one; null
  // if the feed has no copy of this group. Throws StatusException (CANCELLED) if a stop request or
  // End() came first, and rethrows the mover's exception.
  WeightMover::Mark Await(size_t group);
  // Throws the error that stopped the queueing, if any. Does not wait.
  void Check() const;

  // Stops queueing. Returns the mark after the last queued piece; null if none was queued.
  WeightMover::Mark End();

 private:
  // Queues pieces. Returns when all are queued, after a stop or a failure, and also when the window
  // is full unless `may_wait`.
  void Run(bool may_wait) noexcept;
  void QueuePiece();

  WeightMover& mover_;
  const std::vector<Copy> copies_;
  const WeightMover::Mark after_;
  const std::stop_token stop_;
  const FeedLimits limits_;

  // Used by the constructor first, then only by the thread.
  size_t next_ = 0;          // index of the copy that is queued next
  int64_t next_byte_ = 0;    // offset of the next piece in that copy
  int64_t outstanding_ = 0;  // bytes of the pieces in `queued_`
  std::deque<std::pair<WeightMover::Mark, int64_t>> queued_;

  mutable absl::Mutex mutex_;
  std::map<size_t, WeightMover::Mark> whole_
      ABSL_GUARDED_BY(mutex_);  // each group's mark after its last copy
  WeightMover::Mark last_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // no more pieces are queued
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last member, because the thread uses all others
};

}  // namespace wan
