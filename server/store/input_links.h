// Keeps the latents that requests name in artifacts of earlier jobs, without a copy.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/conversion/job_inputs.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Each file is a hard link to the artifact, so it stays when the retention or a caller removes the
// artifact, and its bytes are on the disk once. Only one thread at a time may use the files of one
// job; otherwise the object is thread-safe. In all functions `job` has the form "jobs/ID".
//
//   ROOT/inputs/ID.FIELD    a file of an unfinished job's request
class InputLinks {
 public:
  // Does not touch the disk. `root` is the root of the ArtifactStore.
  explicit InputLinks(const std::filesystem::path& root) : root_(root), folder_(root / "inputs") {}

  // Links each of `inputs.artifacts` to a file of `job`. Removes an entry of which there can be no
  // link, for example because the artifact was removed meanwhile or lies on another file system:
  // the database then stores the file.
  void Add(std::string_view job, JobInputs& inputs) const;
  // Returns when all links that were added are on the disk. Call it once after many calls of Add.
  absl::Status Sync() const;

  // Reads the linked files that `inputs`, from the database, lacks, and sets `inputs.artifacts`.
  // Leaves out files that do not exist or that have another digest than the job's request.
  absl::Status Complete(const wan::v1::Job& job, JobInputs& inputs) const;

  // Removes the job's links. If the removal fails, the next start tries again.
  void Remove(std::string_view job) const;

  // Removes the links of jobs that `keep` rejects. Call it at the server's start.
  absl::Status RemoveLeftovers(const std::function<bool(const std::string& job)>& keep) const;

 private:
  std::filesystem::path PathOf(std::string_view job, std::string_view field) const;

  const std::filesystem::path root_;
  const std::filesystem::path folder_;
};

}  // namespace wan::server
