// Removes files of a folder that an earlier process left.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace wan::server {

// Removes every entry of the folder whose name `keep` rejects; OK if there is no such folder. If
// the folder is a link, fails with FAILED_PRECONDITION and removes nothing of what it leads to.
// Thread-safe.
absl::Status RemoveLeftoverFiles(const std::filesystem::path& folder,
                                 const std::function<bool(const std::string& name)>& keep);

}  // namespace wan::server
