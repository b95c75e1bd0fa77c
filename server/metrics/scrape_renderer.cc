#include "server/metrics/scrape_renderer.h"

#include <algorithm>
#include <map>

namespace wan::server {

ScrapeRenderer::ScrapeRenderer(std::shared_ptr<const ScrapeSource> source, const Rate& rate,
                               Clock& clock)
    : source_(std::move(source)),
      rate_(rate),
      clock_(clock.Steady()),
      thread_([this] { Loop(); }) {}

ScrapeRenderer::~ScrapeRenderer() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void ScrapeRenderer::Render(const Variant& variant, std::function<void(Text)> done) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back({variant, std::move(done)});
}

void ScrapeRenderer::Loop() {
  while (AwaitTurn()) {
    std::vector<Waiting> waiting;
    {
      absl::MutexLock lock(&mutex_);
      waiting.swap(waiting_);
    }
    Answer(waiting);
  }
}

bool ScrapeRenderer::AwaitTurn() {
  const auto asked = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !waiting_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&asked));
  clock_.AwaitUntil(mutex_, absl::Condition(&stop_), next_ - (rate_.burst - 1) * rate_.interval);
  next_ = std::max(next_, clock_.Now()) + rate_.interval;
  return !stop_;
}

void ScrapeRenderer::Answer(const std::vector<Waiting>& waiting) const {
  const Scrape scrape = source_->Collect();
  std::map<Variant, Text> texts;
  for (const auto& [variant, done] : waiting) {
    Text& text = texts[variant];
    if (text == nullptr) {
      std::string plain = WriteMetrics(scrape, variant.format);
      text = std::make_shared<const std::string>(variant.gzip ? Gzip(plain) : std::move(plain));
    }
    done(text);
  }
}

}  // namespace wan::server
