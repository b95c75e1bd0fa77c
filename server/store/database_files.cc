#include "server/store/database_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// The databases in use by this process, by device and inode.
struct UsedFiles {
  absl::Mutex mutex;
  std::set<std::pair<dev_t, ino_t>> files ABSL_GUARDED_BY(mutex);
};

UsedFiles& Used() {
  static auto* const used = new UsedFiles();
  return *used;
}

}  // namespace

FilePlace::FilePlace(const std::string& file) : file_(file) {
  is_file_ = stat(file_.c_str(), &opened_) == 0;
}

absl::Status FilePlace::Check(const std::string& where) const {
  struct stat now = {};
  if (!is_file_ || (stat(file_.c_str(), &now) == 0 && now.st_ino == opened_.st_ino &&
                    now.st_dev == opened_.st_dev)) {
    return absl::OkStatus();
  }
  return WithReason(absl::UnavailableError(absl::StrCat(
                        where,
                        " was removed or replaced while it was open; put it back, or restart the "
                        "server to begin with what is there")),
                    kReasonStorageUnavailable);
}

absl::StatusOr<std::unique_ptr<const SoleUse>> SoleUse::Of(const std::string& file,
                                                           const std::string& where) {
  std::unique_ptr<SoleUse> use(new SoleUse());
  if (stat(file.c_str(), &use->file_) != 0) return use;
  UsedFiles& used = Used();
  absl::MutexLock lock(&used.mutex);
  if (!used.files.emplace(use->file_.st_dev, use->file_.st_ino).second) {
    return absl::UnavailableError(
        absl::StrCat(where, ": another store of this process uses the file"));
  }
  use->is_file_ = true;
  return use;
}

SoleUse::~SoleUse() {
  if (!is_file_) return;
  UsedFiles& used = Used();
  absl::MutexLock lock(&used.mutex);
  used.files.erase({file_.st_dev, file_.st_ino});
}

std::string ImmutableUri(const std::string& file) {
  std::string uri = "file:";
  for (const char c : file) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = absl::ascii_isalnum(byte) || c == '/';
    absl::StrAppend(
        &uri, plain ? std::string(1, c) : absl::StrCat("%", absl::Hex(byte, absl::kZeroPad2)));
  }
  return uri + "?immutable=1";
}

absl::Status LogFile::Sync() {
  if (file_ == nullptr) {
    auto opened = std::make_unique<const Descriptor>(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened->get() >= 0) file_ = std::move(opened);
  }
  if (file_ != nullptr && fdatasync(file_->get()) == 0) return absl::OkStatus();
  return WithReason(absl::UnavailableError(absl::StrCat(
                        where_, ": ", path_, " could not be synced (",
                        std::generic_category().message(errno), "); the disk must take writes")),
                    kReasonStorageUnavailable);
}

}  // namespace wan::server
