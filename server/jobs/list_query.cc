#include "server/jobs/list_query.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"
#include "server/conversion/page_token.h"
#include "server/conversion/sealed_text.h"

namespace wan::server {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// Allows more states than there are, because a caller may name a state twice.
constexpr int kMaxListedStates = 16;

// Returns a text that identifies a list in its page tokens; the order of the states does not
// matter.
std::string ListOf(const wan::v1::ListJobsRequest& request) {
  const std::set<int> states(request.states().begin(), request.states().end());
  return absl::StrCat("ListJobs\n", absl::StrJoin(states, ","), "\n", request.order_by(), "\n",
                      request.filter());
}

void Append(const absl::Status& status, std::vector<FieldViolation>& violations) {
  for (FieldViolation& violation : FieldViolationsOf(status)) {
    violations.push_back(std::move(violation));
  }
}

// Returns a filter that accepts the jobs in one of the states.
JobFilter InStates(const std::set<int>& states) {
  JobFilter any;
  any.kind = JobFilter::Kind::kOr;
  for (const int state : states) {
    JobFilter equal;
    equal.kind = JobFilter::Kind::kCompare;
    equal.field = JobField::kState;
    equal.number = state;
    any.operands.push_back(std::move(equal));
  }
  return any.operands.size() == 1 ? any.operands.front() : any;
}

// Returns the AND of two filters, without nesting ANDs, so that the store sees every condition.
JobFilter Both(JobFilter first, JobFilter second) {
  if (first.kind == JobFilter::Kind::kAll) return second;
  if (first.kind == JobFilter::Kind::kAnd) {
    first.operands.push_back(std::move(second));
    return first;
  }
  JobFilter both;
  both.kind = JobFilter::Kind::kAnd;
  both.operands.push_back(std::move(first));
  both.operands.push_back(std::move(second));
  return both;
}

}  // namespace

absl::StatusOr<JobQuery> QueryOf(const wan::v1::ListJobsRequest& request,
                                 const std::optional<std::string>& owner, std::string_view key) {
  std::vector<FieldViolation> violations;
  JobQuery query;
  query.limit = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (query.limit < 0 || query.limit > kMaxPageSize) {
    violations.push_back(
        {"page_size", absl::StrCat("must be from 1 to ", kMaxPageSize, ", or 0 for ",
                                   kDefaultPageSize, "; got ", query.limit)});
  }
  if (request.states_size() > kMaxListedStates) {
    violations.push_back(
        {"states", absl::StrCat("has ", request.states_size(), " entries; must have at most ",
                                kMaxListedStates)});
    return InvalidFields(violations);
  }
  for (int i = 0; i < request.states_size(); ++i) {
    const int state = request.states(i);
    if (state == wan::v1::JOB_STATE_UNSPECIFIED || !wan::v1::JobState_IsValid(state)) {
      violations.push_back({absl::StrCat("states[", i, "]"),
                            absl::StrCat("must be a state of wan.v1.JobState, got ", state)});
    }
  }
  absl::StatusOr<JobFilter> filter = ParseJobFilter(request.filter());
  Append(filter.status(), violations);
  const absl::StatusOr<ListOrder> order = ParseJobOrder(request.order_by());
  Append(order.status(), violations);
  if (!violations.empty()) return InvalidFields(violations);

  query.order = *order;
  query.filter = *std::move(filter);
  if (request.states_size() > 0) {
    query.filter =
        Both(std::move(query.filter), InStates({request.states().begin(), request.states().end()}));
  }
  query.owner = owner;
  if (!request.page_token().empty()) {
    const absl::StatusOr<std::string> sealed =
        ParsePageToken(request.page_token(), ListOf(request));
    if (!sealed.ok()) return sealed.status();
    const std::vector<std::string> numbers = absl::StrSplit(Unseal(key, *sealed).value_or(""), ',');
    JobPlace after;
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &after.key) ||
        !absl::SimpleAtoi(numbers[1], &after.number)) {
      return InvalidFields({{"page_token", "is not a next_page_token of this list"}});
    }
    query.after = after;
  }
  return query;
}

std::string PageTokenOf(const wan::v1::ListJobsRequest& request, const JobPlace& place,
                        std::string_view key) {
  return MakePageToken(Seal(key, absl::StrCat(place.key, ",", place.number)), ListOf(request));
}

}  // namespace wan::server
