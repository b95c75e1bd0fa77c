// Errors of the disk to which a job's files are written. Such an error is not the job's fault: the
// job can be repeated once the disk accepts writes again.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace wan {

// UNAVAILABLE or RESOURCE_EXHAUSTED: the disk is full, fails or refuses writes.
inline constexpr std::string_view kReasonStorage = "STORAGE_UNAVAILABLE";

// Adds kReasonStorage to `status` if its cause, the errno `error`, is a problem of the disk: no
// space, a quota, a failing or missing device, a read-only file system. Returns `status` unchanged
// for any other errno.
absl::Status WithStorageReason(absl::Status status, int error);

bool IsStorageError(const absl::Status& status);

}  // namespace wan
