#include "server/calls/wake_timer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {

WakeTimer::WakeTimer(Clock& clock) : timer_(clock.Steady()) {
  timer_.Start([this](const std::string& key) { Expired(key); });
}

std::string WakeTimer::Add(Wake wake) {
  absl::MutexLock lock(&mutex_);
  std::string key = absl::StrCat(++last_key_);
  streams_[key] = std::move(wake);
  return key;
}

void WakeTimer::WakeAt(const std::string& key, absl::Time time) {
  timer_.Remove(key);
  timer_.Add(key, time);
}

void WakeTimer::Remove(const std::string& key) {
  timer_.Remove(key);
  absl::MutexLock lock(&mutex_);
  streams_.erase(key);
}

void WakeTimer::Expired(const std::string& key) {
  Wake wake;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = streams_.find(key);
    if (found != streams_.end()) wake = found->second;
  }
  if (wake) wake();
}

}  // namespace wan::server
