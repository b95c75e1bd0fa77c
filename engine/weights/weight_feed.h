// Queues copies of weights to a device piece by piece, so that only few bytes are still queued if a
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

// A queued copy cannot be cancelled, and the copy of a whole expert occupies the link to the device
// for a second. The default window takes 0.02 s on a link of 50 GB/s, and 0.1 s on one of 10 GB/s.
// Queuing a piece takes the host microseconds, so the link is never idle for long.
struct FeedLimits {
  int64_t piece_bytes = int64_t{64} << 20;
  int64_t window_bytes = int64_t{1} << 30;  // maximum number of bytes that are queued but not
                                            // copied yet
};

// The constructor queues the first window of pieces. The feed's own thread queues the other pieces
// as fast as the device copies them. If the device is the host (DeviceIsHost), the constructor
// makes all copies itself. Call all functions on the thread that owns the feed.
class WeightFeed {
 public:
  struct Copy {
    size_t group = 0;
    at::Tensor host;    // a kByte tensor
    at::Tensor device;  // a kByte tensor of the same size
  };

  // Copies in order, beginning once the device has passed the mark `after`. The copies of one group
  // must follow each other in `copies`. `mover` must outlive this object; the tensors must live
  // until the queued copies are done. After a stop request no further piece is queued.
  WeightFeed(WeightMover& mover, std::vector<Copy> copies, WeightMover::Mark after,
             std::stop_token stop, const FeedLimits& limits);
  // The destructor calls End(). The destructor does not wait for the device.
  ~WeightFeed();
  WeightFeed(const WeightFeed&) = delete;
  WeightFeed& operator=(const WeightFeed&) = delete;

  // Blocks until all copies of the group are queued, and returns the mark after the last of them;
  // null if no copy of this feed belongs to the group. Throws StatusException (CANCELLED) if a stop
  // request or End() came first. Rethrows the mover's exception if queuing failed.
  WeightMover::Mark Await(size_t group);
  // Throws the error that stopped the queuing, if there was one. The call does not wait.
  void Check() const;

  // Stops queuing. Returns the mark after the last queued piece; null if no piece was queued.
  WeightMover::Mark End();

 private:
  // Queues pieces on the calling thread. Returns when all pieces are queued, or after a stop or a
  // failure. If `may_wait` is false, also returns when the window is full.
  void Run(bool may_wait) noexcept;
  void QueuePiece();

  WeightMover& mover_;
  const std::vector<Copy> copies_;
  const WeightMover::Mark after_;
  const std::stop_token stop_;
  const FeedLimits limits_;

  // The constructor uses these members first; afterwards only the thread uses them.
  size_t next_ = 0;          // index of the copy from which the next piece comes
  int64_t next_byte_ = 0;    // The next piece begins at this offset of the copy.
  int64_t outstanding_ = 0;  // bytes of all pieces in `queued_`
  std::deque<std::pair<WeightMover::Mark, int64_t>> queued_;

  mutable absl::Mutex mutex_;
  std::map<size_t, WeightMover::Mark> whole_
      ABSL_GUARDED_BY(mutex_);  // for each group, the mark after its last copy
  WeightMover::Mark last_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // true: no more pieces will be queued
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last member, because its thread uses all others
};

}  // namespace wan
