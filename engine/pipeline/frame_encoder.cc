#include "engine/pipeline/frame_encoder.h"

#include <utility>

namespace wan {
namespace {

// Two chunks of a decoder that yields four frames at a time: enough to overlap, little memory.
constexpr size_t kQueueFrames = 8;

}  // namespace

FrameEncoder::FrameEncoder(std::vector<std::unique_ptr<VideoWriter>> writers, Recorder& recorder)
    : writers_(std::move(writers)), recorder_(recorder), thread_([this] { Run(); }) {}

FrameEncoder::~FrameEncoder() {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) abandoned_ = true;
    closed_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool FrameEncoder::HasWork() const { return !queue_.empty() || closed_; }

bool FrameEncoder::HasRoom() const { return queue_.size() < kQueueFrames || !status_.ok(); }

absl::Status FrameEncoder::Push(std::vector<uint8_t> rgb24) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &FrameEncoder::HasRoom));
  if (!status_.ok()) return status_;
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
      if (abandoned_ || queue_.empty()) break;
      frame = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!span) span.emplace(recorder_.StartSpan(kStageVideoEncoding));
    status = WriteFrame(frame);
    if (!status.ok()) break;
  }
  absl::MutexLock lock(&mutex_);
  if (abandoned_) status.Update(absl::CancelledError("the video was abandoned"));
  if (status.ok()) {
    for (const auto& writer : writers_) status.Update(writer->Finish());
  }
  status_ = span ? span->Finish(status) : status;
}

}  // namespace wan
