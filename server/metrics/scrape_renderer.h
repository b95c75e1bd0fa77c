// Makes the text of the metrics once for all waiting scrapes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/metrics/exposition.h"

namespace wan::server {

// Thread-safe. A thread of the renderer collects the metrics at most a few times a second, however
// many scrapes come.
class ScrapeRenderer {
 public:
  // Limits how often the metrics are collected: one round in each `interval`, and after a pause up
  // to `burst` rounds at once.
  struct Rate {
    absl::Duration interval = absl::Milliseconds(200);
    int burst = 5;
  };
  using Text = std::shared_ptr<const std::string>;
  // The form in which a scraper wants the text.
  struct Variant {
    MetricFormat format = MetricFormat::kText;
    bool gzip = false;
    friend bool operator<(const Variant& a, const Variant& b) {
      return std::pair(a.format, a.gzip) < std::pair(b.format, b.gzip);
    }
  };

  // `clock` must outlive the renderer.
  ScrapeRenderer(std::shared_ptr<const ScrapeSource> source, const Rate& rate, Clock& clock);
  ScrapeRenderer(const ScrapeRenderer&) = delete;
  ScrapeRenderer& operator=(const ScrapeRenderer&) = delete;
  // Waits for a running Collect(). Drops waiting scrapes without calling their `done`.
  ~ScrapeRenderer();

  // Calls `done` with the text of a round that begins after this call, so that the text includes
  // all changes made before this call. `done` runs on the renderer's thread and must be quick.
  void Render(const Variant& variant, std::function<void(Text)> done);

 private:
  struct Waiting {
    Variant variant;
    std::function<void(Text)> done;
  };

  void Loop();
  // Waits until the next round may begin; returns false if the renderer is being destroyed.
  bool AwaitTurn();
  void Answer(const std::vector<Waiting>& waiting) const;

  const std::shared_ptr<const ScrapeSource> source_;
  const Rate rate_;
  Clock& clock_;
  // The earliest time of the next round if no burst is allowed. Used only by the renderer's thread.
  absl::Time next_ = absl::InfinitePast();
  absl::Mutex mutex_;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // declared last: it uses the members above
};

}  // namespace wan::server
