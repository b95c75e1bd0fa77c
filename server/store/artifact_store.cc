#include "server/store/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <future>
#include <map>
#include <system_error>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kStaging[] = "staging";
constexpr char kArtifacts[] = "artifacts";
// The pattern for the name that MakeNameless uses for a moment.
constexpr char kNameless[] = "nameless-XXXXXX";
// The file that CheckWritable writes and removes.
constexpr char kProbe[] = ".writable";
constexpr size_t kProbeBytes = size_t{64} << 10;
// The number of bytes to hash at a time; so many bytes fit into a core's cache.
constexpr size_t kHashBytes = size_t{256} << 10;
// How much a reader asks the object store for at a time: a request takes as long as a MiB or two.
constexpr size_t kAheadBytes = size_t{4} << 20;

fs::path FolderOf(const fs::path& root, std::string_view job) {
  return root / kArtifacts / std::string(JobIdOf(job));
}

absl::Status FileError(const std::string& what, const std::error_code& error) {
  return ErrnoError(what, error.value());
}

// Returns the number of bytes read; 0 only at the end of the file.
absl::StatusOr<size_t> ReadInto(int fd, uint64_t offset, std::string& buffer) {
  for (;;) {
    const ssize_t count = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return ErrnoError("reading an artifact", errno);
  }
}

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t max_bytes) {
  std::string data(max_bytes, '\0');
  const absl::StatusOr<size_t> count = ReadInto(fd, offset, data);
  if (!count.ok()) return count.status();
  data.resize(*count);
  return data;
}

absl::StatusOr<wan::v1::Artifact> Describe(std::string_view job, const OutputFile& output) {
  const Descriptor file(open(output.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return absl::InternalError(absl::StrCat("the engine did not write ", output.path));
  }
  Sha256 hash;
  uint64_t size = 0;
  std::string buffer(kHashBytes, '\0');
  for (;;) {
    const absl::StatusOr<size_t> count = ReadInto(file.get(), size, buffer);
    if (!count.ok()) return count.status();
    if (*count == 0) break;
    hash.Update(std::string_view(buffer).substr(0, *count));
    size += *count;
  }
  wan::v1::Artifact artifact;
  artifact.set_name(ArtifactName(job, ArtifactFileName(output.kind)));
  artifact.set_kind(ToProto(output.kind));
  artifact.set_size_bytes(size);
  artifact.set_sha256(hash.FinishHex());
  artifact.set_content_type(std::string(ArtifactContentType(output.kind)));
  return artifact;
}

// Computes size and SHA-256 of the files, and returns when they are on the disk. Hashes and syncs
// all files in parallel; hashing reads the page cache, and so does not wait for the syncs.
absl::StatusOr<std::vector<wan::v1::Artifact>> DescribeSynced(std::string_view job,
                                                              std::span<const OutputFile> outputs) {
  // With `deferred`, the work runs on this thread if the system cannot start another thread.
  constexpr auto kPolicy = std::launch::async | std::launch::deferred;
  std::vector<std::future<absl::Status>> syncs;
  std::vector<std::future<absl::StatusOr<wan::v1::Artifact>>> descriptions;
  for (const OutputFile& output : outputs) {
    syncs.push_back(std::async(kPolicy, [&output] { return SyncPath(output.path); }));
    descriptions.push_back(std::async(kPolicy, [job, &output] { return Describe(job, output); }));
  }
  // Wait for all syncs and descriptions, even after an error.
  absl::Status status;
  std::vector<wan::v1::Artifact> artifacts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    absl::StatusOr<wan::v1::Artifact> artifact = descriptions[i].get();
    status.Update(artifact.status());
    status.Update(syncs[i].get());
    if (artifact.ok()) artifacts.push_back(*std::move(artifact));
  }
  if (!status.ok()) return status;
  return artifacts;
}

}  // namespace

// An open file. Thread-safe.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  virtual uint64_t size() const = 0;
  // Returns at most `bytes` bytes, at least 1; empty at the end of the file.
  virtual absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t bytes) const = 0;
  // Returns how many bytes to read at a time at least.
  virtual size_t read_ahead() const { return 0; }
  // Whether it is this file of the disk.
  virtual bool Is(const struct stat& /*other*/) const { return false; }
};

namespace {

class FileOnDisk final : public OpenFile {
 public:
  // Takes ownership of an open descriptor.
  explicit FileOnDisk(int fd) : fd_(fd) {
    if (fstat(fd, &facts_) != 0) facts_ = {};
  }

  uint64_t size() const override { return static_cast<uint64_t>(facts_.st_size); }
  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t bytes) const override {
    return server::ReadAt(fd_.get(), offset, bytes);
  }
  bool Is(const struct stat& other) const override {
    return facts_.st_dev == other.st_dev && facts_.st_ino == other.st_ino;
  }

 private:
  const Descriptor fd_;
  struct stat facts_ = {};
};

class FileInObjects final : public OpenFile {
 public:
  FileInObjects(JobObjects& objects, JobObjects::File file, uint64_t size)
      : objects_(objects), file_(std::move(file)), size_(size) {}

  uint64_t size() const override { return size_; }
  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t bytes) const override {
    const uint64_t wanted = std::min<uint64_t>(bytes, size_ - std::min(offset, size_));
    if (wanted == 0) return std::string();
    absl::StatusOr<std::string> read = objects_.ReadAt(file_, offset, wanted);
    if (absl::IsNotFound(read.status())) {
      return WithReason(absl::NotFoundError(absl::StrCat(file_.name, " of ", file_.job,
                                                         " was removed while it was read")),
                        kReasonArtifactNotFound);
    }
    if (read.ok() && read->size() != wanted) {
      return absl::DataLossError(
          absl::StrCat(file_.name, " of ", file_.job, " is shorter than when it was published"));
    }
    return read;
  }
  size_t read_ahead() const override { return kAheadBytes; }

 private:
  JobObjects& objects_;
  const JobObjects::File file_;
  const uint64_t size_;
};

}  // namespace

class OpenFiles {
 public:
  // Returns the open file at `path`; opens the file if it is not open yet. Returns null if the file
  // cannot be opened.
  std::shared_ptr<const OpenFile> Open(const std::string& path) {
    absl::MutexLock lock(&mutex_);
    struct stat now = {};
    if (stat(path.c_str(), &now) != 0) return nullptr;
    // A later attempt may have replaced the file while readers still have the former file open.
    if (std::shared_ptr<const OpenFile> known = Known(path); known != nullptr && known->Is(now)) {
      return known;
    }
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    auto file = std::make_shared<const FileOnDisk>(fd);
    Keep(path, file);
    return file;
  }

  // Returns the file that stands for `path`, which is not on the disk, and calls `open` unless it
  // is open already.
  absl::StatusOr<std::shared_ptr<const OpenFile>> OpenElsewhere(
      const std::string& path,
      const std::function<absl::StatusOr<std::shared_ptr<const OpenFile>>()>& open) {
    {
      absl::MutexLock lock(&mutex_);
      if (std::shared_ptr<const OpenFile> file = Known(path)) return file;
    }
    absl::StatusOr<std::shared_ptr<const OpenFile>> file = open();  // may take seconds
    if (!file.ok()) return file;
    absl::MutexLock lock(&mutex_);
    Keep(path, *file);
    return file;
  }

  // Whether a file whose path begins with `folder` is open.
  bool AnyBelow(const std::string& folder) {
    absl::MutexLock lock(&mutex_);
    for (auto entry = files_.lower_bound(folder);
         entry != files_.end() && entry->first.starts_with(folder); ++entry) {
      if (!entry->second.expired()) return true;
    }
    return false;
  }

 private:
  // Returns null if the file is not open.
  std::shared_ptr<const OpenFile> Known(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto known = files_.find(path);
    return known == files_.end() ? nullptr : known->second.lock();
  }
  // Also forgets the files that are no longer open.
  void Keep(const std::string& path, const std::shared_ptr<const OpenFile>& file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    files_[path] = file;
  }

  absl::Mutex mutex_;
  std::map<std::string, std::weak_ptr<const OpenFile>> files_ ABSL_GUARDED_BY(mutex_);
};

ArtifactStore::ArtifactStore(fs::path root, JobObjects* objects)
    : root_(std::move(root)), objects_(objects), open_files_(std::make_shared<OpenFiles>()) {}

absl::StatusOr<std::string> ArtifactReader::Read(size_t max_bytes) {
  if (ahead_used_ == ahead_.size()) {
    absl::StatusOr<std::string> data =
        file_->ReadAt(offset_, std::max(max_bytes, file_->read_ahead()));
    if (!data.ok()) return data;
    ahead_ = *std::move(data);
    ahead_used_ = 0;
  }
  const size_t taken = std::min(max_bytes, ahead_.size() - ahead_used_);
  offset_ += taken;
  if (taken == ahead_.size()) {
    ahead_used_ = 0;
    return std::exchange(ahead_, std::string());
  }
  std::string part = ahead_.substr(ahead_used_, taken);
  ahead_used_ += taken;
  return part;
}

absl::Status ArtifactStore::CheckWritable(uint64_t free_bytes) const {
  const auto refused = [](const std::string& what, int error) {
    return WithReason(ErrnoError(what, error), kReasonStorageUnavailable);
  };
  if (absl::Status status = CheckStaging(); !status.ok()) return status;
  for (const char* folder : {kStaging, kArtifacts}) {
    std::error_code error;
    fs::create_directories(root_ / folder, error);
    if (error) return refused(absl::StrCat("making ", (root_ / folder).string()), error.value());
  }
  const fs::path path = root_ / kStaging / kProbe;
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::string bytes(kProbeBytes, '\0');
  int error = 0;
  if (file.get() < 0 ||
      write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      fsync(file.get()) != 0) {
    error = errno != 0 ? errno : ENOSPC;
  }
  unlink(path.c_str());
  if (error != 0) return refused(absl::StrCat("writing ", path.string()), error);
  if (const uint64_t free = FreeBytes().value_or(0); free_bytes > 0 && free <= free_bytes) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat(root_.string(), " has ", free,
                                       " bytes free, which was too little for a job's files; "
                                       "more than ",
                                       free_bytes, " bytes must be free")),
                      kReasonStorageUnavailable);
  }
  return absl::OkStatus();
}

std::optional<uint64_t> ArtifactStore::FreeBytes() const {
  std::error_code error;
  const fs::space_info space = fs::space(root_, error);
  if (error) return std::nullopt;
  return space.available;
}

uint64_t ArtifactStore::StagedBytes(std::string_view job, int attempt) const {
  uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(StagingFolder(job, attempt), error)) {
    std::error_code ignored;
    const uint64_t size = entry.file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

absl::StatusOr<fs::path> ArtifactPath(const fs::path& root, std::string_view artifact_name) {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(artifact_name, "name");
  if (!ref.ok()) return ref.status();
  return FolderOf(root, ref->job) / ref->file;
}

fs::path ArtifactStore::StagingFolder(std::string_view job, int attempt) const {
  return root_ / kStaging / absl::StrCat(std::string(JobIdOf(job)), "-", attempt);
}

fs::path ArtifactStore::ArtifactFolder(std::string_view job) const { return FolderOf(root_, job); }

absl::StatusOr<std::vector<OutputFile>> ArtifactStore::Stage(
    std::string_view job, int attempt, std::span<const OutputKind> kinds) const {
  Discard(job, attempt);
  const fs::path folder = StagingFolder(job, attempt);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileError(absl::StrCat("making ", folder.string()), error);
  std::vector<OutputFile> outputs;
  for (const OutputKind kind : kinds) {
    outputs.push_back({kind, (folder / std::string(ArtifactFileName(kind))).string()});
  }
  return outputs;
}

absl::StatusOr<std::unique_ptr<const Descriptor>> ArtifactStore::MakeNameless() const {
  std::string path = (root_ / kStaging / kNameless).string();
  auto file = std::make_unique<const Descriptor>(mkostemp(path.data(), O_CLOEXEC));
  if (file->get() < 0) return ErrnoError(absl::StrCat("making ", path), errno);
  if (unlink(path.c_str()) != 0) return ErrnoError(absl::StrCat("removing ", path), errno);
  return file;
}

absl::StatusOr<std::vector<wan::v1::Artifact>> ArtifactStore::Publish(
    std::string_view job, int attempt, std::span<const OutputFile> outputs,
    const std::stop_token& stop) const {
  absl::StatusOr<std::vector<wan::v1::Artifact>> artifacts = DescribeSynced(job, outputs);
  if (!artifacts.ok()) return artifacts.status();
  const fs::path from = StagingFolder(job, attempt);
  const fs::path to = ArtifactFolder(job);
  absl::Status status = SyncPath(from);
  if (status.ok() && objects_ != nullptr) {
    std::vector<fs::path> files;
    for (const OutputFile& output : outputs) files.emplace_back(output.path);
    status = objects_->Publish(job, attempt, files, stop);
  }
  if (!status.ok()) return status;
  std::error_code error;
  fs::create_directories(root_ / kArtifacts, error);
  // The target folder exists if an earlier process died after the rename and before the job's last
  // event.
  RemoveFolder(job).IgnoreError();
  fs::rename(from, to, error);
  if (error) return FileError(absl::StrCat("renaming ", from.string(), " into place"), error);
  status = SyncPath(root_ / kArtifacts);
  if (!status.ok()) return status;
  return artifacts;
}

void ArtifactStore::Discard(std::string_view job, int attempt) const {
  std::error_code ignored;  // ignore errors, because RemoveLeftovers tries again
  fs::remove_all(StagingFolder(job, attempt), ignored);
}

absl::Status ArtifactStore::Remove(std::string_view job) const {
  if (objects_ != nullptr) objects_->RemoveJob(job);
  return RemoveFolder(job);
}

absl::Status ArtifactStore::RemoveAttempt(std::string_view job, int attempt) const {
  if (objects_ != nullptr) objects_->RemoveAttempt(job, attempt);
  return RemoveFolder(job);
}

absl::Status ArtifactStore::RemoveFolder(std::string_view job) const {
  const fs::path folder = ArtifactFolder(job);
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? FileError(absl::StrCat("removing ", folder.string()), error) : absl::OkStatus();
}

bool ArtifactStore::InUse(std::string_view job) const {
  return open_files_->AnyBelow(ArtifactFolder(job).string() + "/");
}

absl::Status ArtifactStore::RemoveFile(std::string_view job, std::string_view file) const {
  if (objects_ != nullptr) objects_->RemoveFile(job, file);
  const fs::path path = ArtifactFolder(job) / file;
  std::error_code error;
  fs::remove(path, error);  // a missing file is not an error
  return error ? FileError(absl::StrCat("removing ", path.string()), error) : absl::OkStatus();
}

absl::Status ArtifactStore::CheckStaging() const {
  const fs::path folder = root_ / kStaging;
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(folder, error))) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        folder.string(),
                        " is a link; must be a folder of its own, because it is emptied at every "
                        "start: remove the link, and the server makes the folder")),
                    kReasonStorageUnavailable);
}

absl::Status ArtifactStore::EmptyStaging() const {
  if (absl::Status status = CheckStaging(); !status.ok()) return status;
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_ / kStaging, error)) {
    leftovers.push_back(entry.path());
  }
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return FileError(absl::StrCat("listing ", (root_ / kStaging).string()), error);
  for (const fs::path& leftover : leftovers) {
    fs::remove_all(leftover, error);
    if (error) return FileError(absl::StrCat("removing ", leftover.string()), error);
  }
  return absl::OkStatus();
}

absl::Status ArtifactStore::RemoveLeftovers(
    const std::function<std::optional<Kept>(const std::string& job)>& kept) const {
  std::error_code error;
  absl::Status status;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_ / kArtifacts, error)) {
    const std::optional<Kept> job = kept("jobs/" + entry.path().filename().string());
    if (!job.has_value()) return status;
    std::vector<fs::path> leftovers;
    if (!job->any) leftovers.push_back(entry.path());
    for (const std::string& file : job->but) leftovers.push_back(entry.path() / file);
    for (const fs::path& leftover : leftovers) {
      std::error_code problem;
      fs::remove_all(leftover, problem);
      if (problem) {
        status.Update(FileError(absl::StrCat("removing ", leftover.string()), problem));
      }
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    status.Update(FileError(absl::StrCat("listing ", (root_ / kArtifacts).string()), error));
  }
  if (objects_ != nullptr) status.Update(RemoveLeftObjects(kept));
  return status;
}

absl::Status ArtifactStore::RemoveLeftObjects(
    const std::function<std::optional<Kept>(const std::string& job)>& kept) const {
  JobObjects::File last;
  std::optional<Kept> stays;  // of the last file's job
  return objects_->VisitFiles([&](const JobObjects::File& file) {
    const bool same_job = file.job == last.job;
    const bool same_attempt = same_job && file.attempt == last.attempt;
    last = file;
    if (!same_job) stays = kept(file.job);
    if (!stays.has_value()) return false;
    if (!stays->any || (stays->attempt != 0 && stays->attempt != file.attempt)) {
      if (!same_attempt) objects_->RemoveAttempt(file.job, file.attempt);
    } else if (std::ranges::find(stays->but, file.name) != stays->but.end()) {
      objects_->RemoveFile(file.job, file.name);
    }
    return true;
  });
}

absl::StatusOr<ArtifactReader> ArtifactStore::OpenForReading(std::string_view artifact_name,
                                                             int attempt, uint64_t offset) const {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(artifact_name, "name");
  if (!ref.ok()) return ref.status();
  const std::string path = (ArtifactFolder(ref->job) / ref->file).string();
  std::shared_ptr<const OpenFile> file = open_files_->Open(path);
  if (file == nullptr && objects_ != nullptr) {
    const auto open = [&]() -> absl::StatusOr<std::shared_ptr<const OpenFile>> {
      JobObjects::File object{ref->job, attempt, ref->file};
      const absl::StatusOr<uint64_t> size = objects_->SizeOf(object);
      if (!size.ok()) return size.status();
      return std::make_shared<const FileInObjects>(*objects_, std::move(object), *size);
    };
    absl::StatusOr<std::shared_ptr<const OpenFile>> opened = open_files_->OpenElsewhere(path, open);
    if (!opened.ok() && !absl::IsNotFound(opened.status())) return opened.status();
    if (opened.ok()) file = *std::move(opened);
  }
  if (file == nullptr) {
    return WithReason(absl::NotFoundError(absl::StrCat("the file of ", std::string(artifact_name),
                                                       " does not exist; it was removed")),
                      kReasonArtifactNotFound);
  }
  const uint64_t size = file->size();
  if (offset > size) {
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is past the end: ",
                                              std::string(artifact_name), " has ", size, " bytes"));
  }
  return ArtifactReader(std::move(file), offset);
}

}  // namespace wan::server
