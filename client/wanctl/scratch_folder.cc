#include "client/wanctl/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace wan::client {

namespace fs = std::filesystem;

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

absl::Status ScratchFolder::Create() {
  if (!path_.empty()) return absl::OkStatus();
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "wanctl.XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return absl::InternalError(
        absl::StrCat("cannot create a folder for downloads in $TMPDIR, ", name, ": ",
                     error ? error.message() : std::generic_category().message(errno)));
  }
  path_ = name;
  return absl::OkStatus();
}

}  // namespace wan::client
