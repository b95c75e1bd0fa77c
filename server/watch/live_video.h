// Keeps the videos of running jobs while they are made (GenerationRequest.progressive), for
// everybody who watches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/generation.h"
#include "server/store/artifact_store.h"

namespace wan::server {

namespace internal {
struct LiveChannel;
struct LiveRecording;
}  // namespace internal

// Reads one job's video while it is made, from its first byte. The bytes are on the disk and the
// reader asks for them, so a reader that is slow or has vanished costs only its position. It reads
// the stream of one attempt: the first one that has begun when the reader looks. Not thread-safe.
class LiveVideoReader {
 public:
  LiveVideoReader(const LiveVideoReader&) = delete;
  LiveVideoReader& operator=(const LiveVideoReader&) = delete;
  // Forgets the function that was passed to Ready.
  ~LiveVideoReader();

  // Returns whether there is something to read: bytes, an end, or that no stream comes. If not,
  // calls `notify` once when it is worth calling Ready again, on any thread with no lock held;
  // `notify` must not block. It may be called while the reader is being destroyed, so it must own
  // what it uses.
  bool Ready(std::function<void()> notify);

  // Call the following only after Ready has returned true.

  // Whether a stream has begun. If not, the job has ended, and its stream with it. UNAVAILABLE if
  // the server is stopping.
  absl::StatusOr<bool> Begun() const;
  // The content type of a stream that has begun, with its codec.
  std::string content_type() const;
  // Returns the next bytes of the stream, at most `max_bytes`; empty if the stream is complete.
  // ABORTED (LIVE_VIDEO_CUT) if the attempt has ended otherwise, or decodes the video again.
  absl::StatusOr<std::string> Read(size_t max_bytes);

 private:
  friend class LiveVideos;
  explicit LiveVideoReader(std::shared_ptr<internal::LiveChannel> channel)
      : channel_(std::move(channel)) {}

  const std::shared_ptr<internal::LiveChannel> channel_;
  std::shared_ptr<internal::LiveRecording> recording_;  // null before the stream has begun
  uint64_t offset_ = 0;
};

// Thread-safe. The bytes are in a file without a name in the folder staging, which the system
// removes when the job has ended and its last reader has gone, or when the process dies.
class LiveVideos {
 public:
  // `artifacts` must outlive the object.
  explicit LiveVideos(const ArtifactStore& artifacts) : artifacts_(artifacts) {}

  // Adds the next part of a running job's stream. Returns why the disk did not take it; then the
  // stream is cut, and later parts are dropped until one begins a new stream.
  absl::Status Add(const std::string& job, const VideoPart& part);

  // Ends the job's stream; nothing happens if there is none. If it is not `complete`, its readers
  // get an error, and readers that come later wait for the job's next attempt.
  void End(const std::string& job, bool complete);

  // The job has ended and its end is stored: readers that wait for a stream learn that none comes.
  // Call End before, and call this function also for a job that had ended before Watch.
  void Forget(const std::string& job);

  // Begins to read the stream of a job. The job must not have ended; otherwise call Forget.
  std::unique_ptr<LiveVideoReader> Watch(const std::string& job);

  // The server stops: all readers get UNAVAILABLE.
  void Close();

 private:
  std::shared_ptr<internal::LiveChannel> ChannelOf(const std::string& job);

  const ArtifactStore& artifacts_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<std::string, std::shared_ptr<internal::LiveChannel>> channels_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
