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

// A condition on a job, as a tree of smaller conditions.
struct JobFilter {
  enum class Kind {
    kAll,      // true for every job
    kAnd,      // all of `operands` must be true
    kOr,       // one of `operands` must be true
    kNot,      // `operands[0]` must be false
    kCompare,  // compares `field` by `op` with a value
  };
  Kind kind = Kind::kAll;
  std::vector<JobFilter> operands;

  // Only kCompare uses the following members. State, priority and times (microseconds since the
  // epoch) are compared with `number`, the other fields with `text`. A comparison of end_time never
  // accepts a job without end_time, and a comparison of a label never accepts a job without that
  // label. kHas, which is for labels only, ignores the value.
  JobField field = JobField::kState;
  std::string label;
  FilterOperator op = FilterOperator::kEqual;
  int64_t number = 0;
  std::string text;
};

// Parses a filter; an empty one accepts every job:
//
//   state = RUNNING AND (model = "ti2v-5b" OR labels.team = video)
//   AND create_time >= "2026-01-01T00:00:00Z"
//
// OR binds more tightly than AND, as in AIP-160; two conditions without an operator mean AND; NOT
// or '-' precedes a condition. Fails with INVALID_ARGUMENT and a violation of `filter` that names
// the position, the text there, and what would be right.
absl::StatusOr<JobFilter> ParseJobFilter(std::string_view text);

enum class JobOrderField { kCreateTime, kEndTime, kPriority };

struct ListOrder {
  JobOrderField field = JobOrderField::kCreateTime;
  bool descending = true;
};

// Parses "FIELD", "FIELD asc" or "FIELD desc", where FIELD is create_time, end_time or priority;
// empty: newest first. Unfinished jobs sort after all end times. Fails with INVALID_ARGUMENT and a
// violation of `order_by`.
absl::StatusOr<ListOrder> ParseJobOrder(std::string_view text);

}  // namespace wan::server
