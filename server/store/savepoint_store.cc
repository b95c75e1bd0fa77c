#include "server/store/savepoint_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/conversion/names.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"
#include "server/store/leftover_files.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

std::string DigestOf(std::string_view described, std::string_view bytes) {
  Sha256 hash;
  hash.Update(described);
  hash.Update(bytes);
  return hash.FinishHex();
}

std::string_view MakersOf(std::string_view identity) {
  return identity.substr(0, identity.find('.'));
}

}  // namespace

fs::path SavepointStore::PathOf(std::string_view job) const {
  return folder_ / std::string(JobIdOf(job));
}

absl::Status SavepointStore::Write(std::string_view job, std::string_view identity,
                                   const Savepoint& savepoint) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return ErrnoError(absl::StrCat("making ", folder_.string()), error.value());
  const std::string described =
      absl::StrCat(std::string(identity), " ", savepoint.steps_done, "\n");
  const std::string head = absl::StrCat(DigestOf(described, savepoint.bytes), " ", described);
  return ReplaceFile(PathOf(job), head, savepoint.bytes);
}

absl::StatusOr<Savepoint> SavepointStore::Read(std::string_view job,
                                               std::string_view identity) const {
  const std::string path = PathOf(job).string();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrnoError(absl::StrCat("opening ", path), errno == 0 ? EIO : errno);
  std::string head;
  std::getline(file, head);
  Savepoint savepoint;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return ErrnoError(absl::StrCat("reading ", path), error.value());
  savepoint.bytes.resize(size - std::min<uintmax_t>(size, head.size() + 1));
  file.read(savepoint.bytes.data(), static_cast<std::streamsize>(savepoint.bytes.size()));
  const std::vector<std::string> fields = absl::StrSplit(head, ' ');
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[2], &savepoint.steps_done) ||
      fields[0] != DigestOf(absl::StrCat(fields[1], " ", fields[2], "\n"), savepoint.bytes)) {
    return absl::DataLossError(absl::StrCat(path, " does not hold what was written to it"));
  }
  if (fields[1] == identity) return savepoint;
  return absl::FailedPreconditionError(absl::StrCat(
      path, MakersOf(fields[1]) == MakersOf(identity)
                ? " was made while the model's files, or those of its LoRAs, were others; they "
                  "have been changed or exchanged since"
                : " was made by another model, version, device or library, or from another "
                  "request"));
}

int SavepointStore::StepsKept(std::string_view job) const {
  std::ifstream file(PathOf(job), std::ios::binary);
  std::string head;
  std::getline(file, head);
  const std::vector<std::string> fields = absl::StrSplit(head, ' ');
  int steps = 0;
  return fields.size() == 3 && absl::SimpleAtoi(fields[2], &steps) ? steps : 0;
}

void SavepointStore::Remove(std::string_view job) const {
  std::error_code ignored;  // if this fails, RemoveLeftovers tries again
  fs::remove(PathOf(job), ignored);
}

absl::Status SavepointStore::RemoveLeftovers(
    const std::function<bool(const std::string& job)>& keep) const {
  return RemoveLeftoverFiles(folder_, [&](const std::string& name) {
    const std::string job = "jobs/" + name;
    return CheckJobName(job, "name").ok() && keep(job);
  });
}

}  // namespace wan::server
