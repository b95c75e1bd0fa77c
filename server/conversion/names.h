// Resource names of wan.v1: "jobs/ID", "jobs/ID/artifacts/FILE", "models/NAME".
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// "jobs/ID" with a fresh random ID of 20 lower-case hex digits.
std::string NewJobName();

// INVALID_ARGUMENT, a violation of `field`, unless `name` has the form "jobs/ID", where ID is 1 to
// 63 lower-case letters, digits and hyphens. What passes is safe as part of a file's path.
absl::Status CheckJobName(std::string_view name, std::string_view field);

// "ID" of "jobs/ID".
std::string_view JobIdOf(std::string_view job_name);

// "jobs/ID/artifacts/FILE".
std::string ArtifactName(std::string_view job_name, std::string_view file);

struct ArtifactRef {
  std::string job;   // "jobs/ID"
  std::string file;  // "video.mp4"
};

// INVALID_ARGUMENT, a violation of `field`, for anything but "jobs/ID/artifacts/FILE" with a FILE
// of letters, digits, '.', '_' and '-' that does not begin with '.'.
absl::StatusOr<ArtifactRef> ParseArtifactName(std::string_view name, std::string_view field);

// "NAME" of "models/NAME"; anything else is taken to be the bare name.
std::string_view BareModelName(std::string_view name);

}  // namespace wan::server
