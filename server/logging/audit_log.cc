#include "server/logging/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace wan::server {
namespace {

constexpr int kMostUnknown = 100;
constexpr int64_t kWindowNanos = int64_t{10} * 1'000'000'000;
constexpr int64_t kTellAgainNanos = int64_t{60} * 1'000'000'000;
constexpr absl::Duration kLastEntries = absl::Seconds(1);
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// Appends to a file that another program may move away at any time. Use the object on one thread at
// a time.
class AppendedFile {
 public:
  explicit AppendedFile(std::string path) : path_(std::move(path)) {}
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile() {
    if (fd_ >= 0) close(fd_);
  }

  // Opens the file that is at the path now. Returns 0, or the errno of the failure.
  int Open() {
    struct stat named = {};
    struct stat held = {};
    const bool same = fd_ >= 0 && stat(path_.c_str(), &named) == 0 && fstat(fd_, &held) == 0 &&
                      named.st_ino == held.st_ino && named.st_dev == held.st_dev;
    if (same) return 0;
    if (fd_ >= 0) close(fd_);
    fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, kOwnerOnly);
    return fd_ >= 0 ? 0 : errno;
  }

  // Appends the line; returns 0, or the errno of the failure. Writes the line by one system call,
  // so that lines of two processes do not mix.
  int Append(std::string_view line) {
    if (const int error = Open(); error != 0) return error;
    const ssize_t written = write(fd_, line.data(), line.size());
    if (written < 0) return errno;
    return written == static_cast<ssize_t>(line.size()) ? 0 : ENOSPC;
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

}  // namespace

AuditLog::AuditLog(Logger& logger, const Clock& clock) : logger_(logger), clock_(clock) {}

AuditLog::AuditLog(std::unique_ptr<Logger> own, const Clock& clock)
    : own_(std::move(own)), logger_(*own_), clock_(clock) {}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::ToFile(const std::string& path, Logger& logger,
                                                           Clock& clock) {
  auto file = std::make_shared<AppendedFile>(path);
  if (const int error = file->Open(); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("audit_log: ", path, " cannot be written: ", std::strerror(error)));
  }
  LineQueue::Options options;
  options.failed = [path, &logger, &clock, told = int64_t{0}](int error) mutable {
    const int64_t now = clock.MonotonicNanos();
    if (told != 0 && now - told < kTellAgainNanos) return;
    told = now;
    logger.Log(LogLevel::kError, "the audit log cannot be written",
               {{"path", path}, {"error", std::strerror(error)}});
  };
  auto queue = std::make_unique<LineQueue>(
      [file](std::string_view line) { return file->Append(line); }, clock, std::move(options));
  return std::unique_ptr<AuditLog>(new AuditLog(
      std::make_unique<Logger>(LogLevel::kInfo, LogFormat::kJson, clock, std::move(queue)), clock));
}

void AuditLog::Write(const AuditEntry& entry) {
  int64_t left_out = 0;
  if (entry.principal.empty() && entry.code == "UNAUTHENTICATED" && !HasRoom(&left_out)) return;
  if (left_out > 0) {
    logger_.Log(LogLevel::kWarning, "audit entries of unknown callers left out",
                {{"count", left_out}});
  }
  logger_.Log(LogLevel::kInfo, "audit",
              {{"principal", entry.principal},
               {"role", entry.role},
               {"method", entry.method},
               {"peer", entry.peer},
               {"resource", entry.resource},
               {"code", entry.code},
               {"reason", entry.reason}});
}

void AuditLog::Flush() {
  if (own_ != nullptr) own_->Flush(kLastEntries);
}

bool AuditLog::HasRoom(int64_t* left_out) {
  absl::MutexLock lock(&mutex_);
  const int64_t now = clock_.MonotonicNanos();
  if (in_window_ == 0 || now >= window_end_) {
    window_end_ = now + kWindowNanos;
    in_window_ = 0;
    *left_out = std::exchange(left_out_, 0);
  }
  if (in_window_ == kMostUnknown) {
    ++left_out_;
    return false;
  }
  ++in_window_;
  return true;
}

}  // namespace wan::server
