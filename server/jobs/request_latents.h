// Collects the files of new requests, of which latents may lie in artifacts of earlier jobs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/errors.h"
#include "server/conversion/job_inputs.h"
#include "server/store/artifact_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Most bytes of an artifact that a request may name as its latents.
inline constexpr uint64_t kMostArtifactLatentsBytes = uint64_t{64} << 20;
// Most bytes of such artifacts that the server holds for requests that are not stored yet.
inline constexpr size_t kMostHeldLatentsBytes = size_t{256} << 20;

// Says whose jobs a caller may read.
struct JobReader {
  std::string owner;  // the caller's principal
  bool all = false;   // whether the caller may read the jobs of all principals
};

// Thread-safe. Reads files, so its calls block.
class RequestLatents {
 public:
  struct Parts {
    // The functions return what JobService's OwnerOf, Get and OpenArtifact return.
    std::function<absl::StatusOr<std::string>(std::string_view job)> owner_of;
    std::function<absl::StatusOr<wan::v1::Job>(std::string_view job)> find;
    std::function<absl::StatusOr<ArtifactReader>(std::string_view artifact)> open;
  };
  explicit RequestLatents(Parts parts) : parts_(std::move(parts)) {}

  // Returns the latents of a request that ValidateRequest accepts, and its image. Adds a violation
  // for latents that cannot be had; a job that `reader` may not read is reported as one that does
  // not exist. RESOURCE_EXHAUSTED (SERVER_BUSY) if the server already holds too many bytes of such
  // artifacts; or another error of the store.
  absl::StatusOr<JobInputs> Read(const wan::v1::GenerationRequest& request, const JobReader& reader,
                                 std::vector<FieldViolation>& violations) const;

 private:
  // Returns OK if `reader` may read the job; NOT_FOUND if it may not, or if there is no such job.
  absl::Status CheckReader(const std::string& job, const JobReader& reader) const;
  // Returns null after a violation.
  absl::StatusOr<JobInputs::File> ReadArtifact(const std::string& field, const std::string& job,
                                               const JobReader& reader,
                                               std::vector<FieldViolation>& violations) const;
  absl::StatusOr<JobInputs::File> Hold(ArtifactReader reader, size_t bytes) const;

  const Parts parts_;
  // Bytes of artifacts in files that Read has returned and that still exist.
  const std::shared_ptr<std::atomic<size_t>> held_ = std::make_shared<std::atomic<size_t>>(0);
};

// Sets the latents of a resolved request: where they come from, and their digests instead of their
// bytes.
void DescribeLatents(const wan::v1::GenerationRequest& asked, const JobInputs& inputs,
                     wan::v1::GenerationRequest& resolved);

}  // namespace wan::server
