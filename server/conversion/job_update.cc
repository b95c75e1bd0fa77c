#include "server/conversion/job_update.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/validation.h"

namespace wan::server {
namespace {

// Allows more paths than there are, because a caller may name one twice.
constexpr int kMaxPaths = 16;

}  // namespace

void JobUpdate::ApplyTo(wan::v1::GenerationRequest& request) const {
  if (priority) request.set_priority(values.priority());
  if (labels) *request.mutable_labels() = values.labels();
  if (deadline) {
    request.clear_deadline();
    if (values.has_deadline()) *request.mutable_deadline() = values.deadline();
  }
}

absl::StatusOr<JobUpdate> ParseJobUpdate(const wan::v1::UpdateJobRequest& request, absl::Time now) {
  JobUpdate update;
  update.job = request.job().name();
  std::vector<FieldViolation> violations =
      FieldViolationsOf(CheckJobName(request.job().name(), "job.name"));
  const auto& paths = request.update_mask().paths();
  if (paths.empty() || paths.size() > kMaxPaths) {
    violations.push_back(
        {"update_mask", absl::StrCat("has ", paths.size(), " paths; must have 1 to ", kMaxPaths)});
  } else {
    for (const std::string& path : paths) {
      const bool all = path == "*";
      update.priority = update.priority || all || path == "request.priority";
      update.deadline = update.deadline || all || path == "request.deadline";
      update.labels = update.labels || all || path == "request.labels";
      if (!all && path != "request.priority" && path != "request.deadline" &&
          path != "request.labels") {
        violations.push_back(
            {"update_mask", absl::StrCat("names '", path.substr(0, 100),
                                         "'; only request.priority, request.deadline and "
                                         "request.labels can change, or * for all three")});
      }
    }
  }
  // Read and check only those fields that can be updated.
  const wan::v1::GenerationRequest& given = request.job().request();
  wan::v1::GenerationRequest checked;
  checked.set_model("any");
  if (update.priority) checked.set_priority(given.priority());
  if (update.deadline && given.has_deadline()) *checked.mutable_deadline() = given.deadline();
  if (update.labels) *checked.mutable_labels() = given.labels();
  std::vector<FieldViolation> wrong = ValidateSizes(checked);
  if (wrong.empty()) wrong = ValidateRequest(checked, now);
  for (FieldViolation& violation : wrong) {
    violation.field = absl::StrCat("job.request.", violation.field);
    violations.push_back(std::move(violation));
  }
  if (!violations.empty()) return InvalidFields(violations);
  update.values = std::move(checked);
  return update;
}

}  // namespace wan::server
