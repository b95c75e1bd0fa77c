// Copies of weights to a device that are queued piece by piece, so that a stop finds little of them
// outstanding.
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

// Nothing that is queued on a device can be called back, and an expert's weights keep the link busy
// for a second. The default window takes 0.02 s on a link of 50 GB/s and 0.1 s on one of 10, and
// the host needs microseconds to queue a piece, so the link never runs out of work.
struct FeedLimits {
  int64_t piece_bytes = int64_t{64} << 20;
  int64_t window_bytes = int64_t{1} << 30;  // what may be queued and not done
};

// The constructor queues the first window. What is beyond it is queued by a thread of the feed's
// own, as fast as the device takes it. Where the device is the host, copies are done when they are
// queued, and the constructor makes all of them. All functions are for the owner's thread.
class WeightFeed {
 public:
  struct Copy {
    size_t group = 0;
    at::Tensor host;    // kByte
    at::Tensor device;  // kByte, of the same size
  };

  // The copies are made in their order and not before `after`; those of one group follow one
  // another. `mover` must outlive the feed, and the memory must live until what was queued is done.
  // After a stop request no further piece is queued.
  WeightFeed(WeightMover& mover, std::vector<Copy> copies, WeightMover::Mark after,
             std::stop_token stop, const FeedLimits& limits);
  // Ends the feed; does not wait for the device.
  ~WeightFeed();
  WeightFeed(const WeightFeed&) = delete;
  WeightFeed& operator=(const WeightFeed&) = delete;

  // Waits until all copies of the group are queued, and returns the mark behind the last one. Null
  // if the feed has none. Throws StatusException, CANCELLED, if a stop request or End came before
  // that, and again what the mover threw.
  WeightMover::Mark Await(size_t group);
  // Throws what Await of the last group would throw by now; does not wait.
  void Check() const;

  // Queues no further piece, and returns when none is being queued: the mark behind the last that
  // was, null if none was.
  WeightMover::Mark End();

 private:
  // Queues pieces. Returns at the end, after a stop or a failure, and, if it `may_wait` not, when
  // the window is full.
  void Run(bool may_wait) noexcept;
  void QueuePiece();

  WeightMover& mover_;
  const std::vector<Copy> copies_;
  const WeightMover::Mark after_;
  const std::stop_token stop_;
  const FeedLimits limits_;

  // Of whoever runs: the constructor, then the thread.
  size_t next_ = 0;          // the copy that is queued next
  int64_t next_byte_ = 0;    // and where in it
  int64_t outstanding_ = 0;  // bytes of `queued_`
  std::deque<std::pair<WeightMover::Mark, int64_t>> queued_;

  mutable absl::Mutex mutex_;
  std::map<size_t, WeightMover::Mark> whole_ ABSL_GUARDED_BY(mutex_);  // groups that are queued
  WeightMover::Mark last_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // nobody queues any more
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace wan
