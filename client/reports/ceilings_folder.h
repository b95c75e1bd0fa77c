// Finds the files of ceilings: `wan_bench ceilings` writes one per device, and the reports find it
// by the device's name. The functions are in the header, so that wan_bench need not link the
// client.
#pragma once

#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

namespace wan::client::reports {

// Returns $XDG_DATA_HOME or, if it is not set, $HOME/.local/share; empty if neither is set.
// Relative paths count as unset, as the XDG Base Directory Specification requires.
inline std::string DataHome() {
  const auto absolute = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value != nullptr && *value == '/' ? value : "");
  };
  std::string data = absolute("XDG_DATA_HOME");
  const std::string home = absolute("HOME");
  if (!data.empty()) return data;
  return home.empty() ? "" : home + "/.local/share";
}

// Returns "DATA_HOME/wanserve/ceilings/NVIDIA-H200.json" for "NVIDIA H200": one '-' replaces each
// run of characters other than letters, digits, dots and underscores. The result is empty if an
// argument is empty.
inline std::string KeptCeilingsPath(const std::string& data_home, std::string_view device) {
  std::string name;
  for (const char c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_') {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  if (data_home.empty() || name.empty()) return "";
  return data_home + "/wanserve/ceilings/" + name + ".json";
}

}  // namespace wan::client::reports
