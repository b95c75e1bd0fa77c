// ServerConfig as a YAML file: one mapping, its keys the settings of server/config/settings.h.
//
//   listen: 0.0.0.0:50051
//   data_dir: /var/lib/wanserve
//   models:
//     ti2v-5b: /models/Wan2.2-TI2V-5B
//   warm_up_shapes: [1280x704x121]
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace wan::server {

// Applies a file's text to `config`; what it does not name stays. INVALID_ARGUMENT has one line for
// each thing that is wrong, "SOURCE:LINE: KEY ...", and says what would be right.
absl::Status ApplyYaml(std::string_view text, std::string_view source, ServerConfig& config);

// A file that ApplyYaml turns into the same config again.
std::string ToYaml(const ServerConfig& config);

}  // namespace wan::server
