// Stores the canary results of every device (docs/operate/operations.md, "A lost device") in the
// data folder.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "engine/api/engine.h"

namespace wan::server {

// Compares a canary with the stored canary of the same setup in the file
// `data_dir`/device_canaries. If the file has no canary of this setup, appends the canary and
// returns OK. Fails with UNAVAILABLE (DEVICE_LOST) and both digests if they differ. Any other error
// only means that the file could not be written. Not thread-safe.
absl::Status CompareCanary(const std::filesystem::path& data_dir, const DeviceCanary& canary);

}  // namespace wan::server
