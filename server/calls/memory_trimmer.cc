#include "server/calls/memory_trimmer.h"

#include <malloc.h>

#include <string>
#include <utility>

namespace wan::server {
namespace {

constexpr absl::Duration kDelay = absl::Seconds(1);
constexpr char kTimer[] = "trim";

}  // namespace

MemoryTrimmer::MemoryTrimmer(Clock& clock, std::function<void()> trim)
    : clock_(clock.Steady()), timer_(clock_) {
  timer_.Start([this, trim = std::move(trim)](const std::string&) {
    {
      absl::MutexLock lock(&mutex_);
      freed_ = 0;
      due_ = false;
    }
    trim();
  });
}

void MemoryTrimmer::TrimHeap() { malloc_trim(0); }

void MemoryTrimmer::OnJobState(const wan::v1::Job& /*job*/, wan::v1::JobState previous) {
  if (previous == wan::v1::JOB_STATE_RUNNING) Freed(kWorthIt);
}

void MemoryTrimmer::OnModelState(const wan::v1::Model& model) {
  if (model.state() != wan::v1::MODEL_STATE_LOADING) Freed(kWorthIt);
}

void MemoryTrimmer::Freed(int64_t bytes) {
  {
    absl::MutexLock lock(&mutex_);
    freed_ += bytes;
    if (due_ || freed_ < kWorthIt) return;
    due_ = true;
  }
  timer_.Add(kTimer, clock_.Now() + kDelay);
}

}  // namespace wan::server
