// Writes frames to video files on a thread of its own, so that encoding overlaps decoding.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/recorder.h"
#include "engine/media/video_writer.h"

namespace wan {

// Only one thread may call Push and Finish. Every writer gets all frames in order. The span
// Video_Encoding lasts from the first frame to the closing of the last file.
class FrameEncoder {
 public:
  // `writers` must be open already. At most `queue_frames` frames (at least 1) wait while another
  // frame is being written. `recorder` must outlive this object.
  FrameEncoder(std::vector<std::unique_ptr<VideoWriter>> writers, int queue_frames,
               Recorder& recorder);
  // The destructor calls Abandon() if Finish was not called.
  ~FrameEncoder();

  // Queues one RGB24 frame. The call blocks only while the queue is full. Returns the first error
  // that any writer has reported so far.
  absl::Status Push(std::vector<uint8_t> rgb24);

  // Writes the queued frames, closes the files, and returns the first error of any writer.
  absl::Status Finish();

  // Gives up: drops the queued frames and leaves the files unfinished. Running and later calls of
  // Push and Finish return CANCELLED. The call does not wait. Any thread may call it.
  void Abandon();

 private:
  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status WriteFrame(const std::vector<uint8_t>& rgb24);

  const std::vector<std::unique_ptr<VideoWriter>> writers_;
  const size_t queue_frames_;
  Recorder& recorder_;

  absl::Mutex mutex_;
  std::deque<std::vector<uint8_t>> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // true: no more frames will come
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last member, because its thread uses all others
};

}  // namespace wan
