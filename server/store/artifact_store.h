// Stores videos as files. Each job has its own folder, which is filled in the folder staging and
// then renamed into place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "server/store/durable_file.h"
#include "server/store/job_objects.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

class OpenFile;
class OpenFiles;

// Returns the path of the file "jobs/ID/artifacts/FILE" in an ArtifactStore with this root;
// INVALID_ARGUMENT for other names. Does not touch the disk.
absl::StatusOr<std::filesystem::path> ArtifactPath(const std::filesystem::path& root,
                                                   std::string_view artifact_name);

// A published file that was opened for reading: on the disk, where all readers of one artifact
// share one file descriptor, or in the object store. Not thread-safe.
class ArtifactReader {
 public:
  // Returns the next bytes, at most `max_bytes`, which must be at least 1; empty at the end of the
  // file.
  absl::StatusOr<std::string> Read(size_t max_bytes);

  // The offset at which the next Read begins.
  uint64_t offset() const { return offset_; }

 private:
  friend class ArtifactStore;
  ArtifactReader(std::shared_ptr<const OpenFile> file, uint64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  std::shared_ptr<const OpenFile> file_;
  uint64_t offset_;
  // Bytes that were read ahead; they begin at offset_ - ahead_used_.
  std::string ahead_;
  size_t ahead_used_ = 0;
};

// Thread-safe, except that only one thread at a time may stage, publish, discard or remove the
// files of one job.
//
//   ROOT/staging/ID-ATTEMPT/FILE   files that are being written
//   ROOT/artifacts/ID/FILE         complete files
//
// With an object store, every published file is in both places, and is read from the store if the
// disk does not have it.
class ArtifactStore {
 public:
  // Does not touch the disk; CheckWritable and Stage create missing folders.
  // `objects` (null: there is no object store) must outlive the object.
  explicit ArtifactStore(std::filesystem::path root, JobObjects* objects = nullptr);

  // Returns OK if a file can be written now and more than `free_bytes` bytes are free; otherwise an
  // error with the reason STORAGE_UNAVAILABLE that names the folder. CheckWritable writes a small
  // file and removes it again.
  absl::Status CheckWritable(uint64_t free_bytes) const;

  // Returns the free bytes of the disk; nullopt if the number is unknown.
  std::optional<uint64_t> FreeBytes() const;

  // Returns the bytes of the files that an attempt has in staging.
  uint64_t StagedBytes(std::string_view job, int attempt) const;

  // Makes an empty folder for one attempt, and returns for each output the path of its file in this
  // folder.
  absl::StatusOr<std::vector<OutputFile>> Stage(std::string_view job, int attempt,
                                                std::span<const OutputKind> kinds) const;

  // Syncs the attempt's files, computes their sizes and SHA-256, and renames the folder into place,
  // so that all files appear at once. Fails with INTERNAL if the engine did not write one of the
  // files. With an object store, first waits until the store has the files, or fails with CANCELLED
  // after a stop (JobObjects::Publish).
  absl::StatusOr<std::vector<wan::v1::Artifact>> Publish(std::string_view job, int attempt,
                                                         std::span<const OutputFile> outputs,
                                                         const std::stop_token& stop) const;

  // Makes an empty file in the folder staging for reading and writing, and takes its name away: the
  // file vanishes when its last descriptor is closed.
  absl::StatusOr<std::unique_ptr<const Descriptor>> MakeNameless() const;

  // Removes the files that an attempt has left in the folder staging. If the removal fails, the
  // next start tries again.
  void Discard(std::string_view job, int attempt) const;

  // Removes the published files of a job that has ended; returns OK if there are none. Readers that
  // have one of the files open on the disk can still read it.
  absl::Status Remove(std::string_view job) const;

  // Removes what an attempt has published although its job did not complete with it.
  absl::Status RemoveAttempt(std::string_view job, int attempt) const;

  // Whether a reader has a file of the job open.
  bool InUse(std::string_view job) const;

  // Removes one published file of a job; returns OK if the file does not exist. Readers that have
  // the file open can still read it.
  absl::Status RemoveFile(std::string_view job, std::string_view file) const;

  // Says which published files of a job stay.
  struct Kept {
    bool any = true;
    int attempt = 0;  // the attempt whose files stay in the object store; 0: those of all
    std::vector<std::string> but;  // exceptions: files to remove even if `any` is true
  };
  // Removes everything in the folder staging. Call EmptyStaging at the server's start, before
  // Stage. If the folder is a link, fails with FAILED_PRECONDITION (STORAGE_UNAVAILABLE) like
  // CheckWritable, and does not remove the files to which the link leads.
  absl::Status EmptyStaging() const;

  // Calls `kept` for each job that has published files, and removes the files that `kept` rejects;
  // ends early when `kept` returns nullopt. The time grows with the number of jobs that have files,
  // so call RemoveLeftovers on a background thread. May or may not visit files that are published
  // during the call.
  absl::Status RemoveLeftovers(
      const std::function<std::optional<Kept>(const std::string& job)>& kept) const;

  // Opens the file "jobs/ID/artifacts/FILE" at a byte offset. Fails with NOT_FOUND
  // (ARTIFACT_NOT_FOUND) if the file does not exist; OUT_OF_RANGE if `offset` is greater than its
  // size. `attempt` is the one that completed the job. May ask the object store, as Read may.
  absl::StatusOr<ArtifactReader> OpenForReading(std::string_view artifact_name, int attempt,
                                                uint64_t offset) const;

 private:
  // Fails with FAILED_PRECONDITION (STORAGE_UNAVAILABLE) if the folder staging is a link.
  absl::Status CheckStaging() const;
  std::filesystem::path StagingFolder(std::string_view job, int attempt) const;
  std::filesystem::path ArtifactFolder(std::string_view job) const;
  absl::Status RemoveFolder(std::string_view job) const;
  absl::Status RemoveLeftObjects(
      const std::function<std::optional<Kept>(const std::string& job)>& kept) const;

  std::filesystem::path root_;
  JobObjects* objects_;  // null: there is no object store
  std::shared_ptr<OpenFiles> open_files_;
};

}  // namespace wan::server
