#include "server/calls/admission.h"

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr absl::Duration kTryAgain = absl::Seconds(1);
// What a download held at most: one chunk as a message and once more on its way.
constexpr int64_t kDownloadBytes = int64_t{512} << 10;

}  // namespace

Admission::Admission(const AdmissionLimits& limits, std::function<void(int64_t bytes)> freed)
    : limits_(limits), freed_(std::move(freed)) {}

absl::StatusOr<Admission::Lease> Admission::Request(int64_t bytes) {
  bool too_many = false;
  {
    absl::MutexLock lock(&mutex_);
    if (stats_.requests >= limits_.requests) {
      too_many = true;
    } else if (bytes <= limits_.small_request_bytes ||
               stats_.request_bytes + bytes <= limits_.request_bytes) {
      ++stats_.requests;
      stats_.request_bytes += bytes;
      return Lease([this, bytes] { ReleaseRequest(bytes); });
    }
    ++stats_.refused_requests;
  }
  Freed(bytes);
  if (too_many) {
    return ServerBusyError(
        absl::StrCat("the server works on ", limits_.requests, " requests, which is its limit"),
        kTryAgain);
  }
  return ServerBusyError(
      absl::StrCat("the server works on requests of ", limits_.request_bytes >> 20,
                   " MiB at most, and this one of ", bytes, " bytes does not fit now"),
      kTryAgain);
}

absl::StatusOr<Admission::Lease> Admission::Stream() {
  absl::MutexLock lock(&mutex_);
  if (stats_.streams < limits_.streams) {
    ++stats_.streams;
    return Lease([this] { ReleaseStream(); });
  }
  ++stats_.refused_streams;
  return ServerBusyError(
      absl::StrCat("the server has ", limits_.streams, " open streams, which is its limit"),
      kTryAgain);
}

absl::StatusOr<Admission::Lease> Admission::Download(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  int& of_peer = downloads_by_peer_[peer];
  const bool too_many_of_peer = of_peer >= limits_.downloads_per_connection;
  if (!too_many_of_peer && stats_.downloads < limits_.downloads) {
    ++of_peer;
    ++stats_.downloads;
    return Lease([this, peer] { ReleaseDownload(peer); });
  }
  if (of_peer == 0) downloads_by_peer_.erase(peer);
  ++stats_.refused_downloads;
  return ServerBusyError(
      too_many_of_peer ? absl::StrCat("this connection has ", limits_.downloads_per_connection,
                                      " open downloads, which is its limit; end one first")
                       : absl::StrCat("the server has ", limits_.downloads,
                                      " open downloads, which is its limit"),
      kTryAgain);
}

AdmissionStats Admission::Stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

void Admission::ReleaseRequest(int64_t bytes) {
  {
    absl::MutexLock lock(&mutex_);
    --stats_.requests;
    stats_.request_bytes -= bytes;
  }
  Freed(bytes);
}

void Admission::ReleaseStream() {
  absl::MutexLock lock(&mutex_);
  --stats_.streams;
}

void Admission::ReleaseDownload(const std::string& peer) {
  {
    absl::MutexLock lock(&mutex_);
    --stats_.downloads;
    const auto found = downloads_by_peer_.find(peer);
    if (--found->second == 0) downloads_by_peer_.erase(found);
  }
  Freed(kDownloadBytes);
}

void Admission::Freed(int64_t bytes) const {
  if (freed_) freed_(bytes);
}

}  // namespace wan::server
