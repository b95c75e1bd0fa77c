#include "engine/api/file_problem.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

std::string UserName(uid_t user) {
  char buffer[1024];
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(user, &entry, buffer, sizeof(buffer), &found) == 0;
  return known && found != nullptr ? std::string(found->pw_name) : absl::StrCat(user);
}

// Returns the target of a link, after following links that lead to links.
fs::path TargetOf(fs::path link) {
  constexpr int kMostLinks = 40;  // the Linux kernel's limit
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(link, error); ++i) {
    const fs::path target = fs::read_symlink(link, error);
    link = (target.is_absolute() ? target : link.parent_path() / target).lexically_normal();
  }
  return link;
}

absl::Status Missing(const std::string& path, const fs::path& part) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(part, error))) {
    const std::string target = TargetOf(part).string();
    const bool cache = absl::StrContains(target, "/blobs/");
    return absl::NotFoundError(absl::StrCat(
        path, ": ", part == path ? "is" : absl::StrCat(part.string(), " is"), " a link to ", target,
        ", which does not exist",
        cache ? "; in a cache of Hugging Face the folder blobs is needed beside snapshots: give "
                "the server both, or a copy without links (cp -rL)"
              : ""));
  }
  return absl::NotFoundError(absl::StrCat(
      path, ": does not exist",
      part == path ? "" : absl::StrCat(", because there is no folder ", part.string())));
}

absl::Status Denied(const std::string& path, const fs::path& part, const struct stat* facts) {
  const std::string who = absl::StrCat("this process's user ", UserName(::geteuid()));
  const std::string whose = facts == nullptr
                                ? ""
                                : absl::StrFormat("; it belongs to %s and has the mode %04o",
                                                  UserName(facts->st_uid), facts->st_mode & 07777);
  return absl::PermissionDeniedError(part == path
                                         ? absl::StrCat(path, ": may not be read by ", who, whose)
                                         : absl::StrCat(path, ": the folder ", part.string(),
                                                        " may not be entered by ", who, whose));
}

bool MayRead(const std::string& path, PathKind kind) {
  const int mode = kind == PathKind::kFolder ? R_OK | X_OK : R_OK;
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// The signature of a file type, with the text for messages and the content that the type fits.
struct Signature {
  std::string_view bytes;
  size_t offset;
  std::string_view what;
  std::optional<FileContent> right_for;
};

constexpr Signature kSignatures[] = {
    {"version https://git-lfs"sv, 0, "is a Git LFS pointer, not the file: run git lfs pull", {}},
    {"PK\x03\x04"sv, 0, "is a zip archive or a file of torch.save (.pth, .pt)",
     FileContent::kTorchArchive},
    {"GGUF"sv, 0, "is a GGUF file", FileContent::kGguf},
    {"\x1f\x8b"sv, 0, "is compressed with gzip: unpack it first (gunzip)", {}},
    {"\x28\xb5\x2f\xfd"sv, 0, "is compressed with Zstandard: unpack it first (unzstd)", {}},
    {"\xfd"
     "7zXZ\0"sv,
     0,
     "is compressed with xz: unpack it first (unxz)",
     {}},
    {"7z\xbc\xaf\x27\x1c"sv, 0, "is a 7-Zip archive: unpack it first", {}},
    {"ustar"sv, 257, "is a tar archive: unpack it first (tar -xf)", {}},
    {"\x89PNG\r\n\x1a\n"sv, 0, "is a PNG image", FileContent::kImage},
    {"\xff\xd8\xff"sv, 0, "is a JPEG image", FileContent::kImage},
    {"\x89HDF\r\n\x1a\n"sv, 0, "is an HDF5 file", {}},
};

// Returns whether `bytes` begin like a pickle of protocol 2 to 5. In a protobuf message, the first
// byte would belong to a field that no message has.
bool IsPickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

// Returns whether `bytes` begin with a header length below 2^32 and the first byte of a header.
bool IsSafetensors(std::string_view bytes) {
  return bytes.size() > 9 && bytes.substr(4, 4) == "\0\0\0\0"sv && bytes[8] == '{';
}

bool IsHtml(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  const absl::string_view text(bytes.data(), bytes.size());
  return absl::StartsWithIgnoreCase(text, "<!doctype html") ||
         absl::StartsWithIgnoreCase(text, "<html") || absl::StartsWithIgnoreCase(text, "<head");
}

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return std::isprint(c) != 0 || c == '\n' || c == '\r' || c == '\t';
  });
}

bool ExpectsText(FileContent expected) {
  return expected == FileContent::kJson || expected == FileContent::kYaml;
}

}  // namespace

absl::Status CheckPath(const std::string& path, PathKind kind) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if (kind == PathKind::kFolder && !S_ISDIR(facts.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(path, ": is a file; must be a folder"));
    }
    if (kind == PathKind::kFile && S_ISDIR(facts.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": is a folder; must be a file in it"));
    }
    if (kind == PathKind::kFile && !S_ISREG(facts.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": is not a regular file; must be one"));
    }
    return MayRead(path, kind) ? absl::OkStatus() : Denied(path, path, &facts);
  }
  const int failure = errno;
  // The shortest beginning of the path that has a problem.
  fs::path part;
  for (const fs::path& name : fs::path(path)) {
    const fs::path folder = part;
    part /= name;
    if (::stat(part.c_str(), &facts) == 0) continue;
    const int reason = errno;
    if (reason == ENOENT) return Missing(path, part);
    if (reason == EACCES) {
      const bool known = ::stat(folder.c_str(), &facts) == 0;
      return Denied(path, folder.empty() ? "." : folder, known ? &facts : nullptr);
    }
    if (reason == ENOTDIR) {
      return absl::NotFoundError(absl::StrCat(path, ": does not exist, because ", folder.string(),
                                              " is a file and not a folder"));
    }
    if (reason == ELOOP) {
      return absl::NotFoundError(
          absl::StrCat(path, ": ", part.string(), " is a link that leads to itself"));
    }
    return absl::ErrnoToStatus(reason, absl::StrCat(path, ": cannot be opened"));
  }
  return absl::ErrnoToStatus(failure, absl::StrCat(path, ": cannot be opened"));
}

bool IsGiven(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

std::string NameForeignContent(std::string_view beginning, FileContent expected) {
  if (beginning.empty()) return "is empty (0 bytes)";
  for (const Signature& signature : kSignatures) {
    if (beginning.size() < signature.offset ||
        !beginning.substr(signature.offset).starts_with(signature.bytes)) {
      continue;
    }
    return signature.right_for == expected ? "" : std::string(signature.what);
  }
  if (IsHtml(beginning)) {
    return "is an HTML page: the download answered with a web page, such as a login or an error; "
           "download the file again";
  }
  if (IsPickle(beginning)) {
    return "is a pickle of Python, such as torch.save wrote before version 1.6: save it again with "
           "a newer torch";
  }
  if (expected != FileContent::kSafetensors && IsSafetensors(beginning)) {
    return "is a safetensors file";
  }
  if (ExpectsText(expected) || expected == FileContent::kImage) return "";
  if (beginning.front() == '{' && IsText(beginning)) return "is a JSON text";
  constexpr size_t kShown = 60;
  const std::string_view line =
      beginning.substr(0, std::min(beginning.find_first_of("\r\n"), kShown));
  if (IsText(beginning) && !line.empty()) {
    return absl::StrCat("is a text that begins with \"",
                        absl::CHexEscape(absl::string_view(line.data(), line.size())), "\"");
  }
  return "";
}

}  // namespace wan
