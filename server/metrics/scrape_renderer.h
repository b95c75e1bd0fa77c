// One text of the metrics for all scrapes that are under way.
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

// Thread-safe. However many scrapes come, the metrics are collected a few times a second at most,
// on the renderer's thread.
class ScrapeRenderer {
 public:
  // How often the metrics are collected: one round follows another after `interval`, except that
  // `burst` rounds may follow at once if there was none for some time.
  struct Rate {
    absl::Duration interval = absl::Milliseconds(200);
    int burst = 5;
  };
  using Text = std::shared_ptr<const std::string>;
  // How a scraper wants the text.
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
  // Waits for a running Collect(). Who still waits for a text is dropped.
  ~ScrapeRenderer();

  // Calls `done` with the text of a round that begins after this call, so that it shows whatever
  // happened before. All who wait when a round begins share it. `done` runs on the renderer's
  // thread and must be quick.
  void Render(const Variant& variant, std::function<void(Text)> done);

 private:
  struct Waiting {
    Variant variant;
    std::function<void(Text)> done;
  };

  void Loop();
  // Waits for the turn of the next round; false: the renderer goes.
  bool AwaitTurn();
  void Answer(const std::vector<Waiting>& waiting) const;

  const std::shared_ptr<const ScrapeSource> source_;
  const Rate rate_;
  Clock& clock_;
  // When the next round would begin if rounds came in a steady row. The renderer's thread only.
  absl::Time next_ = absl::InfinitePast();
  absl::Mutex mutex_;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace wan::server
