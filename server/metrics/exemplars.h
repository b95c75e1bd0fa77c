// Keeps exemplars: for each bucket of a histogram the latest observation and its job, so that a
// slow quantile leads to a job and its trace. prometheus-cpp does not support exemplars; of the two
// text formats only OpenMetrics can show them.
#pragma once

#include <prometheus/histogram.h>
#include <prometheus/labels.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan::server {

struct Exemplar {
  double value = 0;  // the observed value, in the histogram's unit
  absl::Time time;
  std::string job;       // the job's name, "jobs/..."
  std::string trace_id;  // 32 hexadecimal digits; empty if the job has no trace
};

// One exemplar for each bucket, the last one for infinity; nullopt if nothing was observed in the
// bucket.
using BucketExemplars = std::vector<std::optional<Exemplar>>;

// The keys are the name of the histogram's family, and the labels of the series.
using ExemplarTable = std::map<std::string, std::map<prometheus::Labels, BucketExemplars>>;

// Thread-safe. The object holds one exemplar for each bucket, so it grows only with the number of
// series.
class Exemplars {
 public:
  // Replaces the exemplar of the bucket to which `exemplar.value` belongs. `bounds` are the bounds
  // of the histogram; they must be the same at every call for the family.
  void Note(std::string_view family, const prometheus::Labels& labels,
            const prometheus::Histogram::BucketBoundaries& bounds, Exemplar exemplar);

  ExemplarTable Latest() const;

 private:
  mutable absl::Mutex mutex_;
  ExemplarTable table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
