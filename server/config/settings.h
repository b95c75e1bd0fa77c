// The table of settings, from which the YAML file, the flags and --print-config are made. To add a
// setting, add a member to ServerConfig and a row to settings.cc; for the engine, a member to
// EngineOptions and a row to engine_settings.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace wan::server {

struct Setting {
  // Says how the YAML file writes the value.
  enum class Form {
    kText,    // a scalar
    kNumber,  // a scalar without quotes: a number, true or false
    kTexts,   // a scalar, or a sequence of several scalars
    kList,    // a sequence of scalars
    kMap,     // a mapping of scalars; each entry is the value "KEY=VALUE"
    kGroups,  // a sequence of device groups; each is the value "DEVICE=MODEL,MODEL"
  };

  std::string_view key;          // for example "queue_capacity"
  std::string_view placeholder;  // stands for the value in help texts, for example "N"
  std::string_view help;         // one line of text for --help
  Form form;
  // Sets the member from texts: any number of them if IsMany(form), otherwise exactly one. The
  // message of INVALID_ARGUMENT continues a sentence that begins with the setting's key or flag:
  // "is 'x'; must be ...".
  std::function<absl::Status(const std::vector<std::string>& values, ServerConfig& config)> set;
  // The inverse of `set`.
  std::function<std::vector<std::string>(const ServerConfig& config)> get;
  // Whether a new value takes effect when the server reads its settings again (SIGHUP).
  bool reloads = false;
};

// Whether a setting of this form may have several values; then its flag may be repeated.
bool IsMany(Setting::Form form);

// Returns all settings, in the order of --help and docs/operate/operations.md.
const std::vector<Setting>& Settings();

// Returns the setting with this key; null if there is none.
const Setting* FindSetting(std::string_view key);

// Returns the setting that a mistyped key probably means (NearestName); null if none is near.
const Setting* NearestSetting(std::string_view key);

// Calls Setting::set with the values. Also fails with INVALID_ARGUMENT if a value is not UTF-8; as
// with Setting::set, the message continues a sentence that begins with the setting's key or flag.
absl::Status Apply(const Setting& setting, const std::vector<std::string>& values,
                   ServerConfig& config);

// Returns the setting's flag: "--queue-capacity" for the key "queue_capacity", and the singular
// "--model" for the list "models".
std::string FlagOf(const Setting& setting);

}  // namespace wan::server
