// Collects the files of new requests; latents may lie in artifacts of earlier jobs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/job_inputs.h"
#include "server/quota/budget.h"
#include "server/store/artifact_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Maximum number of bytes of an artifact that a request may name as its latents.
inline constexpr uint64_t kMostArtifactLatentsBytes = uint64_t{64} << 20;
// Most bytes of such artifacts that the requests of one call may name; the call holds them, and
// stores them in one transaction.
inline constexpr uint64_t kMostCallLatentsBytes = uint64_t{256} << 20;
// Most bytes of such artifacts that the server holds for requests that are not stored yet. The
// callers share them by the rule of class Budget, so one of them always gets kMostCallLatentsBytes
// if nobody holds any.
inline constexpr uint64_t kMostHeldLatentsBytes = 2 * kMostCallLatentsBytes;

// Decides which jobs a caller may read.
struct JobReader {
  std::string owner;  // the caller's principal
  bool all = false;   // whether the caller may read the jobs of all principals
};

// The artifacts that a request names as its latents.
struct NamedLatents {
  struct Source {
    std::string job;       // "jobs/ID"
    std::string artifact;  // empty: the request names none, or none that can be had
    uint64_t bytes = 0;
  };
  std::array<Source, kLatentsInputs.size()> sources;  // in the order of kLatentsInputs

  uint64_t bytes() const;
};

// Whether a request names a job as the source of its latents.
bool NamesJobs(const wan::v1::GenerationRequest& request);

// Thread-safe. Reads files, so its calls block. For each call of the API: Find for its requests,
// which is cheap; Hold; and Read for each request.
class RequestLatents {
 public:
  struct Parts {
    // The functions do the same as JobService's OwnerOf, Get and OpenArtifact.
    std::function<absl::StatusOr<std::string>(std::string_view job)> owner_of;
    std::function<absl::StatusOr<wan::v1::Job>(std::string_view job)> find;
    std::function<absl::StatusOr<ArtifactReader>(std::string_view artifact)> open;
  };
  explicit RequestLatents(Parts parts) : parts_(std::move(parts)) {}

  // Finds the artifacts of a request without reading them. Adds a violation for latents that cannot
  // be had, but none for a name that is no job's, because ValidateRequest does; a job that `reader`
  // may not read is reported as one that does not exist. Fails with other errors of the store.
  absl::StatusOr<NamedLatents> Find(const wan::v1::GenerationRequest& request,
                                    const JobReader& reader,
                                    std::vector<FieldViolation>& violations) const;

  // Bytes that a call may hold; copies share them, and the last one gives them back.
  using Lease = std::shared_ptr<const void>;
  // Returns a lease of at most kMostCallLatentsBytes. RESOURCE_EXHAUSTED (SERVER_BUSY) if too many
  // bytes are held now, by `owner` or by all. The lease may outlive the object.
  absl::StatusOr<Lease> Hold(const std::string& owner, uint64_t bytes) const;

  // Returns the files of a request that ValidateRequest accepts: its latents, with the artifacts
  // that have them, and its image. `named` is the result of Find; the files keep `lease`. Adds a
  // violation for latents that cannot be had.
  absl::StatusOr<JobInputs> Read(const wan::v1::GenerationRequest& request,
                                 const NamedLatents& named, const Lease& lease,
                                 std::vector<FieldViolation>& violations) const;

 private:
  // Returns OK if `reader` may read the job; NOT_FOUND if it may not, or if there is no such job.
  absl::Status CheckReader(const std::string& job, const JobReader& reader) const;
  // Returns a source without an artifact after a violation.
  absl::StatusOr<NamedLatents::Source> FindArtifact(const std::string& field,
                                                    const std::string& job, const JobReader& reader,
                                                    std::vector<FieldViolation>& violations) const;
  // Returns null after a violation.
  absl::StatusOr<JobInputs::File> ReadArtifact(const std::string& field,
                                               const NamedLatents::Source& source,
                                               const Lease& lease,
                                               std::vector<FieldViolation>& violations) const;

  // The bytes of all leases.
  struct Holdings {
    absl::Mutex mutex;
    Budget budget ABSL_GUARDED_BY(mutex){static_cast<int64_t>(kMostHeldLatentsBytes)};
    // Of each owner who holds any.
    std::map<std::string, uint64_t> held ABSL_GUARDED_BY(mutex);
  };

  const Parts parts_;
  const std::shared_ptr<Holdings> holdings_ = std::make_shared<Holdings>();
};

// Sets the latents of a resolved request: their sources, and their digests instead of their bytes.
void DescribeLatents(const wan::v1::GenerationRequest& asked, const JobInputs& inputs,
                     wan::v1::GenerationRequest& resolved);

}  // namespace wan::server
