// Runs wanserve-fetch-model, which downloads and verifies a published checkpoint.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::client {

// The script wanserve-fetch-model, and the folder with the script's lists of checkpoints.
struct ModelLists {
  std::filesystem::path script;
  std::filesystem::path folder;

  // Returns the names of the lists without ".txt", sorted.
  std::vector<std::string> names() const;
  std::filesystem::path ListOf(const std::string& name) const;
};

// Finds the script and the lists from the folder of the wanctl program: in an installation, or in
// the source tree of a build. Returns NOT_FOUND if neither place has them.
absl::StatusOr<ModelLists> FindModelLists(const std::filesystem::path& program_folder);

// Downloads the model into `folder`, from the repositories at `base` (empty: the script's default).
// The script's output goes to stderr. Returns INTERNAL if the script could not be run or has failed
// (stderr has the reason); CANCELLED after a stop, which ends the script and its download.
absl::Status DownloadModel(const ModelLists& lists, const std::string& name,
                           const std::string& folder, const std::string& base,
                           const std::stop_token& stop);

}  // namespace wan::client
