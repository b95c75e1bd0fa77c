// Parses `filter` (a subset of AIP-160) and `order_by` of ListJobs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::server {

enum class JobField { kState, kModel, kOwner, kPriority, kCreateTime, kEndTime, kLabel };

enum class FilterOperator { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kHas };

// A condition on a job, as a tree.
struct JobFilter {
  enum class Kind {
    kAll,      // every job
    kAnd,      // all of `operands`
    kOr,       // one of `operands`
    kNot,      // not `operands[0]`
    kCompare,  // `field` `op` value
  };
  Kind kind = Kind::kAll;
  std::vector<JobFilter> operands;

  // Members of kCompare. State, priority and times (microseconds since the epoch) compare `number`,
  // the others `text`. A job that has no end_time matches no comparison of it; one without the
  // label `label` matches no comparison of that. kHas (labels only) needs the label and no value.
  JobField field = JobField::kState;
  std::string label;
  FilterOperator op = FilterOperator::kEqual;
  int64_t number = 0;
  std::string text;
};

// Reads a filter; an empty one accepts every job:
//
//   state = RUNNING AND (model = "ti2v-5b" OR labels.team = video) AND create_time >=
//   "2026-01-01T00:00:00Z"
//
// OR binds more tightly than AND, as AIP-160 has it, and two conditions side by side mean AND. NOT,
// or '-', stands before a condition. INVALID_ARGUMENT is a violation of `filter` that names the
// position, what stands there, and what would be right.
absl::StatusOr<JobFilter> ParseJobFilter(std::string_view text);

enum class JobOrderField { kCreateTime, kEndTime, kPriority };

struct ListOrder {
  JobOrderField field = JobOrderField::kCreateTime;
  bool descending = true;
};

// Reads "FIELD", "FIELD asc" or "FIELD desc" with create_time, end_time or priority; empty: the
// newest first. Jobs that have not ended are the last to end. INVALID_ARGUMENT is a violation of
// `order_by`.
absl::StatusOr<ListOrder> ParseJobOrder(std::string_view text);

}  // namespace wan::server
