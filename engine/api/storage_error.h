// Errors of the disk that a job's files are written to. The job is not at fault: it can be done
// again once the disk takes writes.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace wan {

// UNAVAILABLE or RESOURCE_EXHAUSTED: the disk is full, fails, or takes no writes.
inline constexpr std::string_view kReasonStorage = "STORAGE_UNAVAILABLE";

// Returns `status`, which the system's `error` (errno) has caused, with that reason if the error
// is one of a disk: no room, a quota, a device that fails or is gone, a file system that takes no
// writes. Otherwise returns it as it is.
absl::Status WithStorageReason(absl::Status status, int error);

bool IsStorageError(const absl::Status& status);

}  // namespace wan
