// Errors of the disk that a job's files are written to. The job is not at fault: it can be repeated
// once the disk accepts writes.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace wan {

// UNAVAILABLE or RESOURCE_EXHAUSTED: the disk is full, fails or refuses writes.
inline constexpr std::string_view kReasonStorage = "STORAGE_UNAVAILABLE";

// Adds kReasonStorage to `status` if `error`, the errno that caused it, is a disk's: no room, a
// quota, a failing or missing device, a read-only file system. Otherwise returns `status`
// unchanged.
absl::Status WithStorageReason(absl::Status status, int error);

bool IsStorageError(const absl::Status& status);

}  // namespace wan
