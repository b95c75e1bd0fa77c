// Decides whether a job's keys match a filter.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "server/conversion/job_filter.h"

namespace wan::server {

// Stands for the end_time of an unfinished job, so that it sorts after all others.
inline constexpr int64_t kNotEnded = std::numeric_limits<int64_t>::max();

using JobLabels = std::map<std::string, std::string, std::less<>>;

// A row of the table job_keys.
struct JobKeys {
  int64_t state = 0;
  std::string model;
  std::string owner;
  int64_t priority = 0;
  int64_t create_time = 0;  // microseconds since the epoch, like end_time
  int64_t end_time = kNotEnded;
  // Matches calls `labels` for every comparison that needs the labels.
  std::function<const JobLabels&()> labels;
};

// Returns a comparison "`field` = value" that holds for every job that `filter` accepts; null if
// there is none.
const JobFilter* EqualityOf(const JobFilter& filter, JobField field);

// Whether the job matches the filter. The filter is not computed in SQL, because SQL took 85 us for
// a row with many comparisons of labels.
bool Matches(const JobFilter& filter, const JobKeys& keys);

}  // namespace wan::server
