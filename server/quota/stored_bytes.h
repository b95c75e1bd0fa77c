// Checks the quota of bytes that a principal's artifacts take on the disk.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// Returns how many bytes the owner's artifacts take, or the store's error if the store cannot be
// read.
absl::StatusOr<uint64_t> StoredBytesOf(JobStore& store, const std::string& owner);

// Returns RESOURCE_EXHAUSTED (QUOTA_EXCEEDED) if the quota is used up; the error names no time to
// retry, because waiting frees nothing. Reads the store only if the quota limits stored bytes.
absl::Status CheckStoredBytes(JobStore& store, const wan::v1::Quota& quota,
                              const std::string& owner);

}  // namespace wan::server
