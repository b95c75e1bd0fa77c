#include "engine/pipeline/frame_encoder.h"

#include <utility>

namespace wan {
namespace {

absl::Status AbandonedError() { return absl::CancelledError("the video was abandoned"); }

}  // namespace

FrameEncoder::FrameEncoder(std::vector<std::unique_ptr<VideoWriter>> writers, int queue_frames,
                           Recorder& recorder)
    : writers_(std::move(writers)),
      queue_frames_(static_cast<size_t>(queue_frames)),
      recorder_(recorder),
      thread_([this] { Run(); }) {}

FrameEncoder::~FrameEncoder() {
  Abandon();
  if (thread_.joinable()) thread_.join();
}

bool FrameEncoder::HasWork() const { return !queue_.empty() || closed_ || abandoned_; }

bool FrameEncoder::HasRoom() const {
  return queue_.size() < queue_frames_ || abandoned_ || !status_.ok();
}

absl::Status FrameEncoder::Push(std::vector<uint8_t> rgb24) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &FrameEncoder::HasRoom));
  if (!status_.ok()) return status_;
  if (abandoned_) return AbandonedError();
  queue_.push_back(std::move(rgb24));
  return absl::OkStatus();
}

absl::Status FrameEncoder::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  return status_;
}

void FrameEncoder::Abandon() {
  absl::MutexLock lock(&mutex_);
  abandoned_ = true;
}

absl::Status FrameEncoder::WriteFrame(const std::vector<uint8_t>& rgb24) {
  for (const auto& writer : writers_) {
    if (absl::Status status = writer->Write(rgb24); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void FrameEncoder::Run() {
  std::optional<Span> span;
  absl::Status status;
  while (true) {
    std::vector<uint8_t> frame;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FrameEncoder::HasWork));
      if (abandoned_) {
        status = AbandonedError();
        break;
      }
      if (queue_.empty()) break;
      frame = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!span) span.emplace(recorder_.StartSpan(StageKind::kVideoEncoding));
    status = WriteFrame(frame);
    if (!status.ok()) break;
  }
  if (status.ok()) {
    for (const auto& writer : writers_) status.Update(writer->Finish());
  }
  if (span) status = span->Finish(status);
  absl::MutexLock lock(&mutex_);
  status_ = status;
}

}  // namespace wan
