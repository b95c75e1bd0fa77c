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
// Maximum number of bytes of latents in artifacts that the requests of one call may name. The call
// holds these bytes, and stores them in one transaction.
inline constexpr uint64_t kMostCallLatentsBytes = uint64_t{256} << 20;
// Maximum number of bytes of latents from artifacts that the server holds for requests that are not
// stored yet. Callers share these bytes by the rule of class Budget, so a caller always gets
// kMostCallLatentsBytes while nobody holds any.
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
    std::string artifact;  // empty: the request names no artifact, or one that the caller cannot
                           // use
    uint64_t bytes = 0;
  };
  std::array<Source, kLatentsInputs.size()> sources;  // in the order of kLatentsInputs

  uint64_t bytes() const;
};

// Whether a request names a job as the source of its latents.
bool NamesJobs(const wan::v1::GenerationRequest& request);

// Thread-safe. The functions block, because they read files. A call of the API uses the functions
// in this order: Find for each request, which is cheap; Hold once; Read for each request.
class RequestLatents {
 public:
  struct Parts {
    // These functions do the work of JobService's OwnerOf, Get and OpenArtifact.
    std::function<absl::StatusOr<std::string>(std::string_view job)> owner_of;
    std::function<absl::StatusOr<wan::v1::Job>(std::string_view job)> find;
    std::function<absl::StatusOr<ArtifactReader>(std::string_view artifact)> open;
  };
  explicit RequestLatents(Parts parts) : parts_(std::move(parts)) {}

  // Finds the artifacts of a request without reading them. Adds a violation for latents that do not
  // exist or that `reader` may not read (both get one message). Adds none for a malformed job name,
  // because ValidateRequest does. Fails with other errors of the store.
  absl::StatusOr<NamedLatents> Find(const wan::v1::GenerationRequest& request,
                                    const JobReader& reader,
                                    std::vector<FieldViolation>& violations) const;

  // A number of bytes that a call may hold; copies of the lease share the bytes, and the last copy
  // gives them back.
  using Lease = std::shared_ptr<const void>;
  // Returns a lease of at most kMostCallLatentsBytes. Fails with RESOURCE_EXHAUSTED (SERVER_BUSY)
  // if `owner`, or all owners together, hold too many bytes now. The lease may outlive the object.
  absl::StatusOr<Lease> Hold(const std::string& owner, uint64_t bytes) const;

  // Returns the files of a request that ValidateRequest accepts: its latents, with the artifacts
  // that have them, and its image. `named` is the result of Find; the files keep `lease`. Adds a
  // violation for latents that cannot be read any more.
  absl::StatusOr<JobInputs> Read(const wan::v1::GenerationRequest& request,
                                 const NamedLatents& named, const Lease& lease,
                                 std::vector<FieldViolation>& violations) const;

 private:
  // Returns OK if `reader` may read the job; NOT_FOUND if `reader` may not, or if the job does not
  // exist.
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
    // The bytes of each owner who holds any.
    std::map<std::string, uint64_t> held ABSL_GUARDED_BY(mutex);
  };

  const Parts parts_;
  const std::shared_ptr<Holdings> holdings_ = std::make_shared<Holdings>();
};

// Sets the latents of a resolved request: their sources, and their digests instead of their bytes.
void DescribeLatents(const wan::v1::GenerationRequest& asked, const JobInputs& inputs,
                     wan::v1::GenerationRequest& resolved);

}  // namespace wan::server
