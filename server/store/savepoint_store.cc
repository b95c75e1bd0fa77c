#include "server/store/savepoint_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <istream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"
#include "server/store/leftover_files.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

// The second word of the file. Files of earlier releases have the digest of an identity there.
constexpr char kFormat[] = "savepoint2";
// In place of a file's SHA-256 that was not known.
constexpr char kUnknown[] = "-";
// Begin the lines of an origin.
constexpr char kRequest[] = "request";
constexpr char kProvenance[] = "provenance";
constexpr char kFile[] = "file";

// Returns the lines of an origin, with the empty line that ends them.
std::string LinesOf(const SavepointOrigin& origin) {
  std::string lines =
      absl::StrCat(kRequest, " ", origin.request, "\n", kProvenance, " ",
                   absl::BytesToHexString(origin.provenance.SerializeAsString()), "\n");
  for (const JobFile& file : origin.files) {
    absl::StrAppend(&lines, kFile, " ", file.digest_key, " ",
                    file.sha256.empty() ? std::string(kUnknown) : file.sha256, " ", file.size_bytes,
                    " ", absl::CEscape(file.name), "\n");
  }
  return lines + "\n";
}

// Adds one line of an origin. Returns false if it is none.
bool AddLine(const std::string& line, SavepointOrigin& origin) {
  const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 4));
  if (fields.size() == 2 && fields[0] == kRequest) {
    origin.request = fields[1];
    return true;
  }
  if (fields.size() == 2 && fields[0] == kProvenance) {
    return origin.provenance.ParseFromString(absl::HexStringToBytes(fields[1]));
  }
  JobFile file;
  if (fields.size() != 5 || fields[0] != kFile || !absl::SimpleAtoi(fields[3], &file.size_bytes) ||
      !absl::CUnescape(fields[4], &file.name)) {
    return false;
  }
  file.digest_key = fields[1];
  if (fields[2] != kUnknown) file.sha256 = fields[2];
  origin.files.push_back(std::move(file));
  return true;
}

struct Head {
  std::string digest;  // of all that follows it
  std::string format;
  int steps_done = 0;
};

// Reads the first line, which all releases have in the same form.
std::optional<Head> ReadHead(std::istream& file) {
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  Head head;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[2], &head.steps_done)) return std::nullopt;
  head.digest = fields[0];
  head.format = fields[1];
  return head;
}

std::optional<SavepointOrigin> ReadOrigin(std::istream& file) {
  SavepointOrigin origin;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) return origin;
    if (!AddLine(line, origin)) return std::nullopt;
  }
  return std::nullopt;  // cut off
}

absl::Status StorageError(const absl::Status& status) {
  return WithReason(absl::UnavailableError(status.message()), kReasonStorageUnavailable);
}

// The savepoint may be whole, so the job should wait until the disk can be read.
absl::Status DiskError(const std::string& path, int error) {
  const absl::Status status = ErrnoError(absl::StrCat("reading ", path), error);
  return absl::IsNotFound(status) ? status : StorageError(status);
}

absl::Status DamagedError(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " does not hold what was written to it"));
}

}  // namespace

fs::path SavepointStore::PathOf(std::string_view job) const {
  return folder_ / std::string(JobIdOf(job));
}

absl::Status SavepointStore::Write(std::string_view job, const SavepointOrigin& origin,
                                   const Savepoint& savepoint) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return ErrnoError(absl::StrCat("making ", folder_.string()), error.value());
  const std::string described =
      absl::StrCat(kFormat, " ", savepoint.steps_done, "\n", LinesOf(origin));
  Sha256 hash;
  hash.Update(described);
  hash.Update(savepoint.bytes);
  return ReplaceFile(PathOf(job), absl::StrCat(hash.FinishHex(), " ", described), savepoint.bytes);
}

absl::Status SavepointStore::Upload(std::string_view job, const std::stop_token& stop) const {
  return objects_ == nullptr ? absl::OkStatus() : objects_->KeepSavepoint(job, PathOf(job), stop);
}

absl::Status SavepointStore::Fetch(std::string_view job, const std::stop_token& stop) const {
  std::error_code unknown;
  if (fs::exists(PathOf(job), unknown)) return absl::OkStatus();
  if (objects_ == nullptr) return absl::NotFoundError("there is no object store");
  const absl::StatusOr<std::string> bytes = objects_->ReadSavepoint(job, stop);
  if (!bytes.ok()) return bytes.status();
  std::error_code ignored;  // if this fails, writing the file says why
  fs::create_directories(folder_, ignored);
  const absl::Status written = ReplaceFile(PathOf(job), {}, *bytes);
  return written.ok() ? written : StorageError(written);
}

absl::StatusOr<KeptSavepoint> SavepointStore::Read(std::string_view job) const {
  const std::string path = PathOf(job).string();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return DiskError(path, errno == 0 ? EIO : errno);
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return DiskError(path, error.value());
  const std::optional<Head> head = ReadHead(file);
  if (file.bad()) return DiskError(path, EIO);
  if (!head.has_value()) return DamagedError(path);
  const std::optional<SavepointOrigin> origin = ReadOrigin(file);
  if (file.bad()) return DiskError(path, EIO);
  const std::streamoff begin = file.tellg();
  const size_t hashed = head->digest.size() + 1;
  // Read everything behind the digest, and cut off the head when it has been hashed.
  KeptSavepoint kept{origin.value_or(SavepointOrigin()), {head->steps_done, ""}};
  std::string& bytes = kept.savepoint.bytes;
  bytes.resize(size - std::min<uintmax_t>(size, hashed));
  file.clear();
  file.seekg(static_cast<std::streamoff>(hashed));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return DiskError(path, EIO);
  if (head->digest != Sha256Hex(bytes)) return DamagedError(path);
  if (head->format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was made by an earlier release, whose savepoints are not read"));
  }
  if (!origin.has_value()) return DamagedError(path);
  bytes.erase(0, static_cast<size_t>(begin) - hashed);
  return kept;
}

std::optional<SavepointOrigin> SavepointStore::OriginOf(std::string_view job) const {
  std::ifstream file(PathOf(job), std::ios::binary);
  const std::optional<Head> head = ReadHead(file);
  if (!head.has_value() || head->format != kFormat) return std::nullopt;
  return ReadOrigin(file);
}

int SavepointStore::StepsKept(std::string_view job) const {
  std::ifstream file(PathOf(job), std::ios::binary);
  const std::optional<Head> head = ReadHead(file);
  return head.has_value() ? head->steps_done : 0;
}

void SavepointStore::Remove(std::string_view job) const {
  if (objects_ != nullptr) objects_->RemoveSavepoint(job);
  std::error_code ignored;  // ignore errors, because RemoveLeftovers tries again
  fs::remove(PathOf(job), ignored);
}

absl::Status SavepointStore::RemoveLeftObjects(
    const std::function<std::optional<bool>(const std::string& job)>& has_ended) const {
  if (objects_ == nullptr) return absl::OkStatus();
  return objects_->VisitSavepoints([&](const std::string& job) {
    const std::optional<bool> ended = has_ended(job);
    if (ended.value_or(false)) objects_->RemoveSavepoint(job);
    return ended.has_value();
  });
}

absl::Status SavepointStore::RemoveLeftovers(
    const std::function<bool(const std::string& job)>& keep) const {
  return RemoveLeftoverFiles(folder_, [&](const std::string& name) {
    const std::string job = "jobs/" + name;
    return CheckJobName(job, "name").ok() && keep(job);
  });
}

}  // namespace wan::server
