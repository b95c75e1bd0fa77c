// Opens the object store that the settings name.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/config/server_config.h"
#include "server/logging/logger.h"
#include "server/objects/object_store.h"

namespace wan::server {

class Metrics;

// Returns the store, or null if the settings name none. Asks a bucket for its first object, and
// looks whether a folder is there: fails if the store cannot be used before somebody changes
// something (ObjectStore), and logs a warning if it is only away. Blocks for a few seconds at most.
// `metrics` counts the requests to a bucket. `clock` and `metrics` must outlive the store.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjects(const ServerConfig& config, Clock& clock,
                                                         Logger& logger, Metrics& metrics);

}  // namespace wan::server
