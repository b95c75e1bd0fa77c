#include "server/store/leftover_files.h"

#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/durable_file.h"

namespace wan::server {

namespace fs = std::filesystem;

absl::Status RemoveLeftoverFiles(const fs::path& folder,
                                 const std::function<bool(const std::string& name)>& keep) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  if (fs::is_symlink(fs::symlink_status(folder, error))) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.string(),
                     " is a link, so nothing of what it leads to is removed; must be a folder "
                     "of its own"));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!keep(entry.path().filename().string())) leftovers.push_back(entry.path());
  }
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return ErrnoError(absl::StrCat("listing ", folder.string()), error.value());
  for (const fs::path& leftover : leftovers) {
    fs::remove_all(leftover, error);
    if (error) return ErrnoError(absl::StrCat("removing ", leftover.string()), error.value());
  }
  return absl::OkStatus();
}

}  // namespace wan::server
