// Reserves disk space for the outputs of accepted jobs, and refuses jobs for which no space is
// left.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/watch/listener.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the most bytes that a request can take in the data folder: its files uncompressed, one
// savepoint, and its rows; the request must have all its sizes set.
uint64_t MostOutputBytes(const wan::v1::GenerationRequest& request);

// Thread-safe. The reservation of a job begins when the server accepts or recovers the job, and
// ends with the job (OnJobState).
//
// At first a job reserves MostOutputBytes. Once jobs have written four files of the job's model and
// of one kind, the reservation for a file of that kind is twice the most bytes per pixel of the
// last sixteen files.
class DiskReserve final : public StateListener {
 public:
  // `free_bytes` returns the free bytes of the disk with the data folder, or nullopt while that is
  // unknown; then no job is refused. The object calls `free_bytes` while it holds its lock, so
  // `free_bytes` must be quick. Beyond the reservations of jobs, `reserve_bytes` bytes are kept
  // free.
  DiskReserve(uint64_t reserve_bytes, std::function<std::optional<uint64_t>()> free_bytes)
      : free_bytes_(std::move(free_bytes)), reserve_bytes_(reserve_bytes) {}

  // Reserves space for a job before it is accepted. Fails with RESOURCE_EXHAUSTED (DISK_RESERVE), a
  // retry delay and the numbers of bytes if the disk has too little space. Call Release if the job
  // is not accepted after all.
  absl::Status Take(const wan::v1::Job& job);
  void Release(const std::string& job);

  // Returns the bytes that must be free now: the reservations of the accepted jobs plus
  // `reserve_bytes`.
  uint64_t reserved_bytes() const;
  std::optional<uint64_t> free_bytes() const { return free_bytes_(); }

  // Returns OK if the reserved bytes are free or the free bytes are unknown; otherwise
  // RESOURCE_EXHAUSTED with both numbers. After an error, OK needs a tenth more than the reserved
  // bytes, so that the server's health does not flap.
  absl::Status CheckRoom();

  void SetReserve(uint64_t reserve_bytes);

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

 private:
  // For each model and kind of file, the bytes per pixel of the latest files.
  using Observed = std::map<std::pair<std::string, wan::v1::OutputKind>, std::deque<double>>;

  uint64_t Estimate(const wan::v1::GenerationRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(const wan::v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Observe(const wan::v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::optional<uint64_t>()> free_bytes_;
  mutable absl::Mutex mutex_;
  uint64_t reserve_bytes_ ABSL_GUARDED_BY(mutex_);
  bool short_ ABSL_GUARDED_BY(mutex_) = false;  // whether the latest call of CheckRoom failed
  // The reservations; the key is the job.
  std::unordered_map<std::string, uint64_t> parts_ ABSL_GUARDED_BY(mutex_);
  uint64_t sum_ ABSL_GUARDED_BY(mutex_) = 0;  // the sum of parts_
  Observed observed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
