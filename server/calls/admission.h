// How much of what callers cause may be under way at a time (docs/limits.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

struct AdmissionLimits {
  // Bytes of all requests together that are read or worked on. A small request is always admitted,
  // so that those that cancel and watch get through beside large ones.
  int64_t request_bytes = int64_t{256} << 20;
  int64_t small_request_bytes = int64_t{64} << 10;
  // Open streams of every kind: watchers, downloads, Generate.
  int streams = 16'384;
  // Open downloads, in all and over one connection.
  int downloads = 256;
  int downloads_per_connection = 64;
  // Requests of any size that are read or worked on.
  int requests = 8'192;
};

struct AdmissionStats {
  int64_t request_bytes = 0;
  int requests = 0;
  int streams = 0;
  int downloads = 0;
  int64_t refused_requests = 0;
  int64_t refused_streams = 0;
  int64_t refused_downloads = 0;
};

// Thread-safe. What is too much is refused at once, never queued: memory stays within the limits
// whatever callers do, and a caller that is refused learns when to try again.
class Admission {
 public:
  // A place that is taken until the lease goes. It must not outlive the admission.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(std::function<void()> release) : release_(std::move(release)) {}
    Lease(Lease&& other) noexcept : release_(std::exchange(other.release_, nullptr)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(release_, other.release_);
      return *this;
    }
    ~Lease() {
      if (release_) release_();
    }

   private:
    std::function<void()> release_;
  };

  // `freed` is told about bytes that are not needed any more, those of refused requests too; any
  // thread, no lock held.
  explicit Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed = {});
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // RESOURCE_EXHAUSTED (SERVER_BUSY) with a retry delay if there is no room for one more request,
  // or for `bytes`, now.
  absl::StatusOr<Lease> Request(int64_t bytes);

  // The same for one more stream.
  absl::StatusOr<Lease> Stream();

  // The same for a download over the connection that `peer` names (grpc::ServerContext::peer).
  absl::StatusOr<Lease> Download(const std::string& peer);

  const AdmissionLimits& limits() const { return limits_; }
  AdmissionStats Stats() const;

 private:
  void ReleaseRequest(int64_t bytes);
  void ReleaseStream();
  void ReleaseDownload(const std::string& peer);
  void Freed(int64_t bytes) const;

  const AdmissionLimits limits_;
  const std::function<void(int64_t)> freed_;
  mutable absl::Mutex mutex_;
  AdmissionStats stats_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> downloads_by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
