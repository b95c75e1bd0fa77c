#include "server/metrics/exemplars.h"

#include <algorithm>
#include <utility>

namespace wan::server {

void Exemplars::Note(std::string_view family, const prometheus::Labels& labels,
                     const prometheus::Histogram::BucketBoundaries& bounds, Exemplar exemplar) {
  // As in the histogram, a value equal to a bound belongs to the bucket of that bound.
  const auto bucket = static_cast<size_t>(
      std::lower_bound(bounds.begin(), bounds.end(), exemplar.value) - bounds.begin());
  absl::MutexLock lock(&mutex_);
  BucketExemplars& buckets = table_[std::string(family)][labels];
  buckets.resize(bounds.size() + 1);
  buckets[bucket] = std::move(exemplar);
}

ExemplarTable Exemplars::Latest() const {
  absl::MutexLock lock(&mutex_);
  return table_;
}

}  // namespace wan::server
