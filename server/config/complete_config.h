// Checks the settings together.
#pragma once

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace wan::server {

// Call once after all settings are read. Fills in settings that depend on others (dtype, each
// model's LoRAs) and checks settings against each other. INVALID_ARGUMENT if data_dir is not set,
// if `device` and `groups` disagree, if a model and a group do not fit, if listen and
// metrics_listen are the same address, if a LoRA belongs to no model, if a file of TLS or the
// secret of webhooks is missing, if traces have a header but no endpoint, or if other machines may
// reach an address of gRPC or HTTP on which nobody is authenticated and `insecure` is not set.
absl::Status Complete(ServerConfig& config);

}  // namespace wan::server
