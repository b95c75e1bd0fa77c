// Removes the folders from file paths in messages for job owners, who must not see the server's
// file system. All functions are pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan::server {

// Shortens every absolute path in the text to its last part: "/models/wan/vae.pth: cannot read"
// becomes "vae.pth: cannot read". A path ends at a space, a quote, a comma or a bracket, except
// within one of `folders`.
std::string WithoutFolders(std::string_view text, std::span<const std::string> folders = {});

// Shortens the paths in the status' message, and keeps the status' code and payloads.
absl::Status WithoutFolders(const absl::Status& status, std::span<const std::string> folders);

}  // namespace wan::server
