// Fills in the settings that depend on others, and checks settings against each other.
#pragma once

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace wan::server {

// Call Complete once after all settings are read. Fills in dtype, devices and each model's LoRAs.
// Fails with INVALID_ARGUMENT if data_dir is not set, if `device` and `groups` disagree, if a model
// and a group do not fit, if listen and metrics_listen are the same address, if a LoRA belongs to
// no model, if the setting of a TLS file or of the webhook secret is missing, if a header for
// traces is set but no endpoint, or if other machines can reach a gRPC or HTTP address without
// authentication and `insecure` is not set.
absl::Status Complete(ServerConfig& config);

}  // namespace wan::server
