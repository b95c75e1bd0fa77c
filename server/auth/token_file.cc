#include "server/auth/token_file.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/auth/guarded_file.h"

namespace wan::server {
namespace {

constexpr std::string_view kTokenPrefix = "wan_";
constexpr size_t kTokenBytes = 32;
constexpr size_t kHashDigits = size_t{2} * SHA256_DIGEST_LENGTH;
constexpr std::string_view kHash = "sha256:";
constexpr std::string_view kSubject = "subject:";
constexpr size_t kIdDigits = 12;
constexpr size_t kMaxNameLength = 63;
constexpr size_t kColumns = 4;
constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
constexpr char kHeader[] =
    "# Principals of wanserve: NAME ROLE CREATED sha256:HASH OF A TOKEN or subject:SUBJECT OF A\n"
    "# CLIENT CERTIFICATE. 'wanserve token' changes this file; the server reads it again then.\n";

std::string Hex(const unsigned char* bytes, size_t size) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes), size});
}

absl::Status Errno(const std::string& path, std::string_view what) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat(path, " cannot be ", std::string(what), ": ", std::strerror(errno)));
}

// Owns a file descriptor.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : fd_(open(path.c_str(), flags, kOwnerOnly)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

// Parses one line of the token file; returns what is wrong with the line, or nothing.
std::optional<std::string> ParseLine(std::string_view line, Credential* credential) {
  // The last column is the rest of the line: a certificate's subject may contain spaces.
  const std::vector<std::string> columns = absl::StrSplit(
      absl::string_view(line.data(), line.size()), absl::MaxSplits(' ', kColumns - 1));
  if (columns.size() != kColumns) {
    return "must be NAME ROLE CREATED and sha256:HASH or subject:SUBJECT, with one space between";
  }
  credential->principal.name = columns[0];
  if (const absl::Status name = CheckPrincipalName(columns[0]); !name.ok()) {
    return std::string(name.message());
  }
  const std::optional<Role> role = ParseRole(columns[1]);
  if (!role.has_value()) return "the role must be viewer, user or admin";
  credential->principal.role = *role;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_sec, columns[2], &credential->created, &error)) {
    return "the third column must be a time such as 2026-11-22T08:00:00Z";
  }
  std::string_view value = columns[3];
  const bool token = value.starts_with(kHash);
  if (!token && !value.starts_with(kSubject)) {
    return "the fourth column must begin with sha256: or subject:";
  }
  value.remove_prefix(token ? kHash.size() : kSubject.size());
  if (token ? !IsHash(value) : value.empty()) {
    return token ? "sha256: must be followed by 64 lower-case hex digits"
                 : "subject: must be followed by the subject of a certificate";
  }
  credential->kind = token ? Credential::Kind::kToken : Credential::Kind::kSubject;
  credential->value = std::string(value);
  return std::nullopt;
}

// Changes the token file; a lock keeps other processes from changing it meanwhile.
absl::Status Change(const std::string& path,
                    const std::function<absl::Status(std::vector<Credential>&)>& change) {
  // The lock is a separate file, because a change replaces the token file itself.
  const std::string lock_path = path + ".lock";
  const OpenFile lock(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW);
  if (lock.fd() < 0 || flock(lock.fd(), LOCK_EX) != 0) return Errno(lock_path, "locked");
  absl::StatusOr<std::vector<Credential>> credentials = ReadTokenFile(path);
  if (absl::IsNotFound(credentials.status())) credentials = std::vector<Credential>();
  if (!credentials.ok()) return credentials.status();
  if (absl::Status changed = change(*credentials); !changed.ok()) return changed;
  return WriteTokenFile(path, *credentials);
}

}  // namespace

std::string NewToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  // OpenSSL 3's generator fails only if the machine has no source of entropy. Abort the process
  // then, rather than make a weak token.
  if (RAND_priv_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) std::abort();
  return absl::StrCat(std::string(kTokenPrefix), Hex(bytes.data(), bytes.size()));
}

std::string HashOfToken(std::string_view token) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return Hex(hash.data(), hash.size());
}

absl::Status CheckPrincipalName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == '@';
  });
  if (plain && !name.empty() && name.size() <= kMaxNameLength) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the principal's name must be 1 to ",
                                                 kMaxNameLength,
                                                 " letters, digits, '.', '_', '-' and '@'"));
}

absl::StatusOr<std::vector<Credential>> ParseTokenFile(std::string_view text,
                                                       std::string_view source) {
  std::vector<Credential> credentials;
  absl::Status read =
      ReadLines(text, source, [&](std::string_view line) -> std::optional<std::string> {
        Credential credential;
        std::optional<std::string> problem = ParseLine(line, &credential);
        if (!problem.has_value()) credentials.push_back(std::move(credential));
        return problem;
      });
  if (!read.ok()) return read;
  return credentials;
}

std::string TokenFileText(const std::vector<Credential>& credentials) {
  std::string text = kHeader;
  for (const Credential& credential : credentials) {
    const bool token = credential.kind == Credential::Kind::kToken;
    absl::StrAppend(&text, credential.principal.name, " ",
                    std::string(NameOf(credential.principal.role)), " ",
                    absl::FormatTime(kTimeFormat, credential.created, absl::UTCTimeZone()), " ",
                    std::string(token ? kHash : kSubject), credential.value, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<Credential>> ReadTokenFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadGuardedFile(path, "who could let themselves in");
  if (!text.ok()) return text.status();
  return ParseTokenFile(*text, path);
}

absl::Status WriteTokenFile(const std::string& path, const std::vector<Credential>& credentials) {
  const std::string text = TokenFileText(credentials);
  const std::string staged = path + ".new";
  unlink(staged.c_str());  // remove the file that a process has left that was killed during this
                           // function
  {
    const OpenFile file(staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
    if (file.fd() < 0) return Errno(staged, "written");
    const bool written =
        fchmod(file.fd(), kOwnerOnly) == 0 &&
        write(file.fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        fsync(file.fd()) == 0;
    if (!written) return Errno(staged, "written");
  }
  if (rename(staged.c_str(), path.c_str()) != 0) return Errno(path, "replaced");
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const OpenFile parent(folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent.fd() < 0 || fsync(parent.fd()) != 0) return Errno(folder.string(), "synced");
  return absl::OkStatus();
}

absl::Status AddCredential(const std::string& path, const Credential& credential) {
  return Change(path, [&](std::vector<Credential>& credentials) {
    credentials.push_back(credential);
    return absl::OkStatus();
  });
}

std::string IdOf(const Credential& credential) {
  return credential.kind == Credential::Kind::kToken ? credential.value.substr(0, kIdDigits)
                                                     : credential.value;
}

absl::StatusOr<int> RevokeCredentials(const std::string& path, std::string_view principal,
                                      std::string_view id) {
  int revoked = 0;
  absl::Status changed = Change(path, [&](std::vector<Credential>& credentials) -> absl::Status {
    revoked = static_cast<int>(std::erase_if(credentials, [&](const Credential& credential) {
      return credential.principal.name == principal && (id.empty() || IdOf(credential) == id);
    }));
    if (revoked > 0) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(path, " has no such credential of the principal '",
                                            std::string(principal), "'"));
  });
  if (!changed.ok()) return changed;
  return revoked;
}

}  // namespace wan::server
