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

// Push from one thread; frames leave in order to every writer. The span Video_Encoding runs from
// the first frame to the closing of the last file.
class FrameEncoder {
 public:
  // Writers are open. `recorder` must outlive the encoder.
  FrameEncoder(std::vector<std::unique_ptr<VideoWriter>> writers, Recorder& recorder);
  // Abandons the video if Finish was not called.
  ~FrameEncoder();

  // One RGB24 frame. Blocks while the queue is full; returns the first error of any writer.
  absl::Status Push(std::vector<uint8_t> rgb24);

  // Writes what is queued and closes the files.
  absl::Status Finish();

  // The files are not wanted any more: queued frames are dropped, the files stay unfinished, and
  // Push and Finish, also those that wait, return CANCELLED. Any thread; does not wait.
  void Abandon();

 private:
  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status WriteFrame(const std::vector<uint8_t>& rgb24);

  const std::vector<std::unique_ptr<VideoWriter>> writers_;
  Recorder& recorder_;

  absl::Mutex mutex_;
  std::deque<std::vector<uint8_t>> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // no more frames will come
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace wan
