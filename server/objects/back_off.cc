#include "server/objects/back_off.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

bool Pause(Clock& clock, absl::Duration time, const std::stop_token& stop) {
  absl::Mutex mutex;
  bool stopped = false;
  const std::stop_callback on_stop(stop, [&] {
    absl::MutexLock lock(&mutex);
    stopped = true;
  });
  Clock& steady = clock.Steady();
  absl::MutexLock lock(&mutex);
  return !steady.AwaitUntil(mutex, absl::Condition(&stopped), steady.Now() + time);
}

absl::Duration BackOff::Next() {
  absl::BitGen random;
  const absl::Duration pause = next_ * absl::Uniform(random, 0.5, 1.0);
  next_ = std::min(next_ * 2, most_);
  return pause;
}

}  // namespace wan::server
