// Keeps the videos of running jobs (GenerationRequest.progressive), so that callers can watch a
// video while the server makes it.
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

// Reads one job's video from the first byte, while the server makes the video. The bytes are on the
// disk and readers ask for them, so a slow or vanished reader costs only the memory of a position.
// A reader reads the stream of one attempt: the first stream that has begun when the reader looks.
// Not thread-safe.
class LiveVideoReader {
 public:
  LiveVideoReader(const LiveVideoReader&) = delete;
  LiveVideoReader& operator=(const LiveVideoReader&) = delete;
  // Forgets the function that was passed to Ready.
  ~LiveVideoReader();

  // Returns whether the reader has news: bytes, the stream's end, or the fact that no stream comes.
  // If not, calls `notify` once when the caller should call Ready again, on any thread with no lock
  // held. `notify` must not block, and must own the objects that it uses, because it may be called
  // while the reader is being destroyed.
  bool Ready(std::function<void()> notify);

  // Call the following functions only after Ready has returned true.

  // Whether a stream has begun. If not, the job has ended and has no stream. Returns UNAVAILABLE if
  // the server is stopping.
  absl::StatusOr<bool> Begun() const;
  // The content type of a stream that has begun, with its codec.
  std::string content_type() const;
  // Returns the next bytes of the stream, at most `max_bytes`; empty if the stream is complete.
  // Returns ABORTED (LIVE_VIDEO_CUT) if the attempt has ended without completing the stream, or
  // decodes the video again.
  absl::StatusOr<std::string> Read(size_t max_bytes);

 private:
  friend class LiveVideos;
  explicit LiveVideoReader(std::shared_ptr<internal::LiveChannel> channel)
      : channel_(std::move(channel)) {}

  const std::shared_ptr<internal::LiveChannel> channel_;
  std::shared_ptr<internal::LiveRecording> recording_;  // null before the stream has begun
  uint64_t offset_ = 0;
};

// Thread-safe. The bytes are in a nameless file in the folder staging. The system removes the file
// when the job has ended and its last reader has gone, or when the process dies.
class LiveVideos {
 public:
  // `artifacts` must outlive the object.
  explicit LiveVideos(const ArtifactStore& artifacts) : artifacts_(artifacts) {}

  // Adds the next part of a running job's stream. If the disk refuses the part, returns the reason,
  // cuts the stream, and drops later parts until a part begins a new stream.
  absl::Status Add(const std::string& job, const VideoPart& part);

  // Ends the job's stream; does nothing if the job has no stream. If the stream is not `complete`,
  // its readers get an error, and later readers wait for the job's next attempt.
  void End(const std::string& job, bool complete);

  // Call Forget when a job's end is stored: waiting readers then learn that no stream comes. Call
  // End before Forget. Also call Forget for a job that had ended before Watch.
  void Forget(const std::string& job);

  // Begins to read the stream of a job. The job must not have ended; otherwise call Forget.
  std::unique_ptr<LiveVideoReader> Watch(const std::string& job);

  // Call Close when the server stops: all readers then get UNAVAILABLE.
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
