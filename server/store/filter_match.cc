#include "server/store/filter_match.h"

#include <algorithm>

namespace wan::server {
namespace {

template <typename Value>
bool Compares(const Value& found, FilterOperator op, const Value& wanted) {
  switch (op) {
    case FilterOperator::kLess:
      return found < wanted;
    case FilterOperator::kLessOrEqual:
      return found <= wanted;
    case FilterOperator::kGreater:
      return found > wanted;
    case FilterOperator::kGreaterOrEqual:
      return found >= wanted;
    default:
      return found == wanted;
  }
}

bool Matches(const JobFilter& comparison, const JobLabels& labels) {
  const auto found = labels.find(comparison.label);
  if (found == labels.end()) return false;
  return comparison.op == FilterOperator::kHas || found->second == comparison.text;
}

}  // namespace

const JobFilter* EqualityOf(const JobFilter& filter, JobField field) {
  const auto is_it = [field](const JobFilter& candidate) {
    return candidate.kind == JobFilter::Kind::kCompare && candidate.field == field &&
           candidate.op == FilterOperator::kEqual;
  };
  if (is_it(filter)) return &filter;
  if (filter.kind != JobFilter::Kind::kAnd) return nullptr;
  const auto found = std::find_if(filter.operands.begin(), filter.operands.end(), is_it);
  return found == filter.operands.end() ? nullptr : &*found;
}

bool Matches(const JobFilter& filter, const JobKeys& keys) {
  const auto matches = [&](const JobFilter& operand) { return Matches(operand, keys); };
  switch (filter.kind) {
    case JobFilter::Kind::kAll:
      return true;
    case JobFilter::Kind::kNot:
      return !matches(filter.operands.front());
    case JobFilter::Kind::kAnd:
      return std::all_of(filter.operands.begin(), filter.operands.end(), matches);
    case JobFilter::Kind::kOr:
      return std::any_of(filter.operands.begin(), filter.operands.end(), matches);
    case JobFilter::Kind::kCompare:
      break;
  }
  switch (filter.field) {
    case JobField::kState:
      return Compares(keys.state, filter.op, filter.number);
    case JobField::kModel:
      return Compares(keys.model, filter.op, filter.text);
    case JobField::kOwner:
      return Compares(keys.owner, filter.op, filter.text);
    case JobField::kPriority:
      return Compares(keys.priority, filter.op, filter.number);
    case JobField::kCreateTime:
      return Compares(keys.create_time, filter.op, filter.number);
    case JobField::kEndTime:
      return keys.end_time < kNotEnded && Compares(keys.end_time, filter.op, filter.number);
    case JobField::kLabel:
      return Matches(filter, keys.labels());
  }
  return false;
}

}  // namespace wan::server
