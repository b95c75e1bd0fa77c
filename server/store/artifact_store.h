// Where videos lie: one folder a job, filled in a staging folder and renamed into place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// An open file, and all the files that are open, in the source file.
class OpenFile;
class OpenFiles;

// An open artifact. All readers of one artifact share one descriptor. One thread at a time.
class ArtifactReader {
 public:
  // The next bytes, at most `max_bytes` (at least 1); empty at the end of the file.
  absl::StatusOr<std::string> Read(size_t max_bytes);

  // Where the next Read begins.
  uint64_t offset() const { return offset_; }

 private:
  friend class ArtifactStore;
  ArtifactReader(std::shared_ptr<const OpenFile> file, uint64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  std::shared_ptr<const OpenFile> file_;
  uint64_t offset_;
};

// Thread-safe for different jobs; one thread at a time for one job's Stage, Publish and Remove.
//
//   ROOT/staging/ID-ATTEMPT/FILE   being written
//   ROOT/artifacts/ID/FILE         complete
class ArtifactStore {
 public:
  // Does not touch the disk: CheckWritable and Stage create the folders that are missing.
  explicit ArtifactStore(std::filesystem::path root);

  // OK if a file can be written now and more than `free_bytes` are free; else a status with the
  // reason STORAGE_UNAVAILABLE that names the folder. Writes and removes a small file.
  absl::Status CheckWritable(uint64_t free_bytes) const;

  // Bytes that may still be written; 0 if that cannot be told.
  uint64_t FreeBytes() const;

  // Bytes of what an attempt has in staging.
  uint64_t StagedBytes(std::string_view job, int attempt) const;

  // An empty folder for one attempt, and the path in it of each output.
  absl::StatusOr<std::vector<OutputFile>> Stage(std::string_view job, int attempt,
                                                std::span<const OutputKind> kinds) const;

  // Syncs the attempt's files, computes size and SHA-256, and renames the folder into place, all
  // files at once. INTERNAL names a file that the engine did not write.
  absl::StatusOr<std::vector<wan::v1::Artifact>> Publish(std::string_view job, int attempt,
                                                         std::span<const OutputFile> outputs) const;

  // Removes what an attempt left in staging. What cannot be removed now goes at the next start.
  void Discard(std::string_view job, int attempt) const;

  // Removes what Publish put in place for a job that did not complete after all.
  void Remove(std::string_view job) const;

  // At start: empties staging and removes the artifacts of jobs that `keep` does not want.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

  // OUT_OF_RANGE if `offset` is greater than the file's size; NOT_FOUND (ARTIFACT_NOT_FOUND) if
  // there is no such file. `artifact_name` has the form "jobs/ID/artifacts/FILE".
  absl::StatusOr<ArtifactReader> OpenForReading(std::string_view artifact_name,
                                                uint64_t offset) const;

 private:
  std::filesystem::path StagingFolder(std::string_view job, int attempt) const;
  std::filesystem::path ArtifactFolder(std::string_view job) const;

  std::filesystem::path root_;
  std::shared_ptr<OpenFiles> open_files_;
};

}  // namespace wan::server
