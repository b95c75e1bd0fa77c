#include "server/watch/live_video.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace internal {

// The stream of one attempt. The channel's mutex guards the members that are not const.
struct LiveRecording {
  enum class State { kGrows, kComplete, kCut };

  const std::unique_ptr<const Descriptor> file;
  const std::string codec;
  uint64_t size = 0;
  State state = State::kGrows;
};

// The state that the readers of one job share.
struct LiveChannel {
  absl::Mutex mutex;
  std::shared_ptr<LiveRecording> recording ABSL_GUARDED_BY(mutex);  // null: no stream has begun
  bool over ABSL_GUARDED_BY(mutex) = false;                         // true: no further stream
                                                                    // begins
  bool stopping ABSL_GUARDED_BY(mutex) = false;                     // true: the server is stopping
  // The waiting readers, with the functions to call.
  std::unordered_map<const LiveVideoReader*, std::function<void()>> waiting ABSL_GUARDED_BY(mutex);
};

}  // namespace internal

using internal::LiveChannel;
using internal::LiveRecording;

namespace {

absl::Status CutError() {
  return WithReason(absl::AbortedError("the attempt that made this video has ended before the "
                                       "video was complete; watch it again, or wait for the file"),
                    kReasonLiveVideoCut);
}

// Changes a channel under its lock, and then, with no lock held, notifies the readers that wait.
template <typename Change>
void ChangeAndNotify(LiveChannel& channel, const Change& change) {
  std::unordered_map<const LiveVideoReader*, std::function<void()>> waiting;
  {
    absl::MutexLock lock(&channel.mutex);
    change();
    waiting.swap(channel.waiting);
  }
  for (const auto& [reader, notify] : waiting) notify();
}

absl::Status WriteAt(int fd, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError("writing a video while it is made", errno);
    offset += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

}  // namespace

LiveVideoReader::~LiveVideoReader() {
  std::function<void()> last;  // destroyed after the lock is released, because the function may own
                               // other readers
  absl::MutexLock lock(&channel_->mutex);
  const auto found = channel_->waiting.find(this);
  if (found == channel_->waiting.end()) return;
  last = std::move(found->second);
  channel_->waiting.erase(found);
}

bool LiveVideoReader::Ready(std::function<void()> notify) {
  absl::MutexLock lock(&channel_->mutex);
  if (recording_ == nullptr) recording_ = channel_->recording;
  const bool ready =
      channel_->stopping ||
      (recording_ == nullptr
           ? channel_->over
           : recording_->size > offset_ || recording_->state != LiveRecording::State::kGrows);
  if (!ready) channel_->waiting[this] = std::move(notify);
  return ready;
}

absl::StatusOr<bool> LiveVideoReader::Begun() const {
  absl::MutexLock lock(&channel_->mutex);
  if (channel_->stopping) return ServerStoppingError();
  return recording_ != nullptr;
}

std::string LiveVideoReader::content_type() const {
  return absl::StrCat("video/mp4; codecs=\"", recording_->codec, "\"");
}

absl::StatusOr<std::string> LiveVideoReader::Read(size_t max_bytes) {
  uint64_t size = 0;
  {
    absl::MutexLock lock(&channel_->mutex);
    if (channel_->stopping) return ServerStoppingError();
    // End a cut stream at once, so that no player shows its last frames as the video's end.
    if (recording_->state == LiveRecording::State::kCut) return CutError();
    size = recording_->size;
  }
  std::string bytes(std::min<uint64_t>(max_bytes, size - offset_), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = pread(recording_->file->get(), bytes.data() + filled,
                                bytes.size() - filled, static_cast<off_t>(offset_ + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError("reading a video while it is made", errno);
    if (count == 0) return CutError();
    filled += static_cast<size_t>(count);
  }
  offset_ += bytes.size();
  return bytes;
}

std::shared_ptr<LiveChannel> LiveVideos::ChannelOf(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<LiveChannel>& channel = channels_[job];
  if (channel == nullptr) {
    channel = std::make_shared<LiveChannel>();
    absl::MutexLock channel_lock(&channel->mutex);
    channel->stopping = closed_;
  }
  return channel;
}

absl::Status LiveVideos::Add(const std::string& job, const VideoPart& part) {
  const std::shared_ptr<LiveChannel> channel = ChannelOf(job);
  if (!part.codec.empty()) {
    End(job, /*complete=*/false);
    absl::StatusOr<std::unique_ptr<const Descriptor>> file = artifacts_.MakeNameless();
    if (!file.ok()) return file.status();
    ChangeAndNotify(*channel, [&] {
      channel->mutex.AssertHeld();
      channel->recording.reset(new LiveRecording{*std::move(file), part.codec});
    });
  }
  std::shared_ptr<LiveRecording> recording;
  uint64_t size = 0;
  {
    absl::MutexLock lock(&channel->mutex);
    recording = channel->recording;
    if (recording == nullptr) return absl::OkStatus();
    size = recording->size;
  }
  absl::Status written = WriteAt(recording->file->get(), size, part.bytes);
  if (!written.ok()) {
    End(job, /*complete=*/false);
    return written;
  }
  ChangeAndNotify(*channel, [&] {
    channel->mutex.AssertHeld();
    recording->size += part.bytes.size();
  });
  return absl::OkStatus();
}

void LiveVideos::End(const std::string& job, bool complete) {
  std::shared_ptr<LiveChannel> channel;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = channels_.find(job);
    if (found == channels_.end()) return;
    channel = found->second;
  }
  ChangeAndNotify(*channel, [&] {
    channel->mutex.AssertHeld();
    if (channel->recording == nullptr) return;
    channel->recording->state =
        complete ? LiveRecording::State::kComplete : LiveRecording::State::kCut;
    if (!complete) channel->recording = nullptr;
  });
}

void LiveVideos::Forget(const std::string& job) {
  std::shared_ptr<LiveChannel> channel;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = channels_.find(job);
    if (found == channels_.end()) return;
    channel = std::move(found->second);
    channels_.erase(found);
  }
  ChangeAndNotify(*channel, [&] {
    channel->mutex.AssertHeld();
    channel->over = true;
  });
}

std::unique_ptr<LiveVideoReader> LiveVideos::Watch(const std::string& job) {
  return std::unique_ptr<LiveVideoReader>(new LiveVideoReader(ChannelOf(job)));
}

void LiveVideos::Close() {
  std::vector<std::shared_ptr<LiveChannel>> channels;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (const auto& [job, channel] : channels_) channels.push_back(channel);
  }
  for (const auto& channel : channels) {
    ChangeAndNotify(*channel, [&] {
      channel->mutex.AssertHeld();
      channel->stopping = true;
    });
  }
}

}  // namespace wan::server
