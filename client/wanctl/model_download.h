// Runs wanserve-fetch-model, which downloads and verifies a published checkpoint.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::client {

// The script, and the folder of its lists.
struct ModelLists {
  std::filesystem::path script;
  std::filesystem::path folder;

  // Returns the names of the lists without ".txt", sorted.
  std::vector<std::string> names() const;
  std::filesystem::path ListOf(const std::string& name) const;
};

// Finds both from the folder of wanctl's program: as installed, or in the tree where it was built.
// NOT_FOUND if neither has them.
absl::StatusOr<ModelLists> FindModelLists(const std::filesystem::path& program_folder);

// Downloads the model into `folder`, from the repositories at `base` (empty: the script's default).
// What the script prints goes to stderr. INTERNAL if the script could not be run or has failed, and
// says why on stderr; CANCELLED after a stop, which ends the script and its download.
absl::Status DownloadModel(const ModelLists& lists, const std::string& name,
                           const std::string& folder, const std::string& base,
                           const std::stop_token& stop);

}  // namespace wan::client
