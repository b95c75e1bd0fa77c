#include "server/store/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "server/store/durable_file.h"

namespace wan::server {
namespace {

// Returns the disk space that the file takes; the file's size may be larger, because a copy of it
// may have holes.
uint64_t TakenBy(const struct stat& facts) { return static_cast<uint64_t>(facts.st_blocks) * 512; }

}  // namespace

void Ballast::Fill() const {
  const Descriptor file(open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat facts = {};
  struct statvfs disk = {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0 || fstatvfs(file.get(), &disk) != 0) return;
  const uint64_t held = TakenBy(facts);
  if (held >= kBytes) return;
  const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  const uint64_t more = std::min(kBytes - held, free / 2);
  if (more == 0 || posix_fallocate(file.get(), 0, static_cast<off_t>(held + more)) == 0) return;
  // Undo a partial allocation. Ignore errors, because the next call tries again.
  static_cast<void>(!ftruncate(file.get(), static_cast<off_t>(held)));
}

bool Ballast::Release() const {
  struct stat facts = {};
  return lstat(file_.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && TakenBy(facts) > 0 &&
         truncate(file_.c_str(), 0) == 0;
}

}  // namespace wan::server
