#include "server/auth/guarded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/api/utf8.h"

namespace wan::server {
namespace {

constexpr off_t kMaxFileBytes = off_t{8} << 20;

absl::Status Unreadable(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be read: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> ReadGuardedFile(const std::string& path, std::string_view danger) {
  // With O_NONBLOCK, opening a named pipe returns at once; without it, the server would wait for a
  // writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Unreadable(path);
  const absl::Cleanup closed = [file] { close(file); };
  struct stat facts = {};
  if (fstat(file, &facts) != 0) return Unreadable(path);
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMaxFileBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " must be a regular file of at most ", kMaxFileBytes >> 20, " MiB"));
  }
  if ((facts.st_mode & S_IWOTH) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is writable by everybody, ", std::string(danger), "; run chmod 600 on it"));
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  const ssize_t bytes = pread(file, text.data(), text.size(), 0);
  if (bytes < 0) return Unreadable(path);
  text.resize(static_cast<size_t>(bytes));
  if (!IsUtf8(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not UTF-8; save it in that encoding"));
  }
  return text;
}

absl::Status ReadLines(std::string_view text, std::string_view source,
                       absl::FunctionRef<std::optional<std::string>(std::string_view line)> read) {
  std::vector<std::string> problems;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    if (const std::optional<std::string> problem = read({line.data(), line.size()})) {
      problems.push_back(absl::StrCat(std::string(source), ":", number, ": ", *problem));
    }
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace wan::server
