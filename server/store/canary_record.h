// What every device has computed so far, kept beside the jobs.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "engine/api/engine.h"

namespace wan::server {

// Compares a canary with the one that `data_dir` keeps for the same setup, in the file
// device_canaries; the first of a setup is kept. UNAVAILABLE (DEVICE_LOST) with both digests if
// they differ. Other statuses say that the file could not be read or written, and nothing of the
// device. One caller at a time.
absl::Status CompareCanary(const std::filesystem::path& data_dir, const DeviceCanary& canary);

}  // namespace wan::server
