// The table of settings: what files, flags and --print-config know about each member of
// ServerConfig. A new setting is a member there and a row here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace wan::server {

struct Setting {
  // How a file writes it.
  enum class Form {
    kText,    // a scalar
    kNumber,  // an unquoted scalar: numbers and true or false
    kList,    // a sequence of scalars
    kMap,     // a mapping of scalars; each entry is the value "KEY=VALUE"
  };

  std::string_view key;          // "queue_capacity"
  std::string_view placeholder;  // of a flag's value: "N"
  std::string_view help;
  Form form;
  // Sets the member from values as text, exactly one unless the form is kList or kMap.
  // INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is 'x', must
  // be...".
  std::function<absl::Status(const std::vector<std::string>& values, ServerConfig& config)> set;
  // The values that would set the member to what it is.
  std::function<std::vector<std::string>(const ServerConfig& config)> get;
};

const std::vector<Setting>& Settings();

// Null for an unknown key.
const Setting* FindSetting(std::string_view key);

// "--queue-capacity" of "queue_capacity".
std::string FlagOf(const Setting& setting);

// Fills in what depends on other settings (dtype) and checks what only the whole can tell: that
// data_dir is set, that listen and metrics_listen differ, and that LoRAs are of models that are
// there.
absl::Status Complete(ServerConfig& config);

}  // namespace wan::server
