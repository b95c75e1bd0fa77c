// Makes, checks and splits the resource names of wan.v1: "jobs/ID", "jobs/ID/artifacts/FILE",
// "models/NAME".
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// Returns "jobs/ID" with a random ID of 20 lower-case hex digits.
std::string NewJobName();

// Returns OK if `name` has the form "jobs/ID", where ID is 1 to 63 lower-case letters, digits and
// hyphens; such a name is safe as part of a path. Fails with INVALID_ARGUMENT and a violation of
// `field` if the name has another form.
absl::Status CheckJobName(std::string_view name, std::string_view field);

// Returns "ID" of "jobs/ID". The name must have passed CheckJobName.
std::string_view JobIdOf(std::string_view job_name);

// Returns "jobs/ID/artifacts/FILE".
std::string ArtifactName(std::string_view job_name, std::string_view file);

struct ArtifactRef {
  std::string job;   // the job's name, "jobs/ID"
  std::string file;  // the file's name, for example "video.mp4"
};

// Splits "jobs/ID/artifacts/FILE", where FILE has letters, digits, '.', '_' and '-' and does not
// begin with '.'. Fails with INVALID_ARGUMENT and a violation of `field` if the name has another
// form.
absl::StatusOr<ArtifactRef> ParseArtifactName(std::string_view name, std::string_view field);

// Returns "NAME" of "models/NAME"; returns any other text unchanged.
std::string_view BareModelName(std::string_view name);

}  // namespace wan::server
