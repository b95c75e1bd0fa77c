// Reads and writes ServerConfig as a YAML file: one mapping with the keys of the table in
// server/config/settings.h:
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

// Sets the members of `config` that the YAML text names. `source` is the name by which messages
// call the file. Fails with INVALID_ARGUMENT; the message has one line "SOURCE:LINE: KEY ..." for
// each error, with the values that are allowed. After an error, `config` may be partly changed.
absl::Status ApplyYaml(std::string_view text, std::string_view source, ServerConfig& config);

// Returns YAML text that ApplyYaml turns into the same config again.
std::string ToYaml(const ServerConfig& config);

}  // namespace wan::server
