// Queues copies of weights to a device piece by piece, so that little of them is outstanding when a
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

// Queued copies cannot be cancelled, and those of an expert occupy the link for a second. The
// default window takes 0.02 s on a link of 50 GB/s and 0.1 s on one of 10 GB/s. The host queues a
// piece in microseconds, so the link does not run out of work.
struct FeedLimits {
  int64_t piece_bytes = int64_t{64} << 20;
  int64_t window_bytes = int64_t{1} << 30;  // most bytes that may be queued and not done
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

  // Makes the copies in order, after `after`. Copies of one group must be adjacent. `mover` must
  // outlive this object, and the tensors must live until the queued copies are done. After a stop
  // request it queues no further piece.
  WeightFeed(WeightMover& mover, std::vector<Copy> copies, WeightMover::Mark after,
             std::stop_token stop, const FeedLimits& limits);
  // Calls End(). Does not wait for the device.
  ~WeightFeed();
  WeightFeed(const WeightFeed&) = delete;
  WeightFeed& operator=(const WeightFeed&) = delete;

  // Waits until all copies of the group are queued, and returns the mark after the last one; null
  // if the feed has no copy of this group. Throws StatusException (CANCELLED) if a stop request or
  // End came before that, and rethrows the mover's exception.
  WeightMover::Mark Await(size_t group);
  // Throws what Await of the last group would throw now. Does not wait.
  void Check() const;

  // Stops queueing. Returns the mark after the last queued piece; null if none was queued.
  WeightMover::Mark End();

 private:
  // Queues pieces. Returns at the end, after a stop or a failure, and, unless `may_wait`, when the
  // window is full.
  void Run(bool may_wait) noexcept;
  void QueuePiece();

  WeightMover& mover_;
  const std::vector<Copy> copies_;
  const WeightMover::Mark after_;
  const std::stop_token stop_;
  const FeedLimits limits_;

  // Used by the constructor, then by the thread.
  size_t next_ = 0;          // the copy that is queued next
  int64_t next_byte_ = 0;    // and the offset in it
  int64_t outstanding_ = 0;  // bytes of `queued_`
  std::deque<std::pair<WeightMover::Mark, int64_t>> queued_;

  mutable absl::Mutex mutex_;
  std::map<size_t, WeightMover::Mark> whole_ ABSL_GUARDED_BY(mutex_);  // groups that are queued
  WeightMover::Mark last_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // no more pieces are queued
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last, because it uses all other members
};

}  // namespace wan
