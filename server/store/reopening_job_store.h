// A JobStore whose file need not be there yet, or may not be writable yet.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/store/job_store.h"

namespace wan::server {

// Thread-safe. Passes every call on to the store that is open. Before one is, calls return why with
// the reason STORAGE_UNAVAILABLE, and so do changes while the store can only be read.
class ReopeningJobStore final : public JobStore {
 public:
  using Opener = std::function<absl::StatusOr<std::unique_ptr<JobStore>>()>;

  // `open` opens the store; `open_for_reading` is asked if the storage refuses that.
  ReopeningJobStore(Opener open, Opener open_for_reading)
      : open_(std::move(open)), open_for_reading_(std::move(open_for_reading)) {}

  // Opens the store if it is not open for writing. Returns why it cannot be written; a status
  // without the reason STORAGE_UNAVAILABLE will not pass by itself (the file is damaged, or
  // another server's). Calls wait meanwhile.
  absl::Status Reopen();

  // Whether there is a store, if only to read.
  bool opened() const;

  absl::Status Insert(const StoredJob& job, const std::string& image,
                      std::span<const wan::v1::Event> events) override;
  absl::Status Apply(std::span<const JobChange> changes) override;
  absl::StatusOr<StoredJob> Get(std::string_view job) override;
  absl::StatusOr<StoredJob> FindByRequestId(std::string_view request_id) override;
  absl::StatusOr<JobPage> List(const JobQuery& query) override;
  absl::StatusOr<std::vector<StoredJob>> Unfinished() override;
  absl::Status CheckWritable() override;
  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override;
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override;
  absl::StatusOr<std::string> Image(std::string_view job) override;

 private:
  template <typename Call>
  auto Read(const Call& call) -> decltype(call(std::declval<JobStore&>()));
  template <typename Call>
  absl::Status Write(const Call& call);

  const Opener open_;
  const Opener open_for_reading_;
  mutable absl::Mutex mutex_;  // shared by calls, exclusive while the store is replaced
  std::unique_ptr<JobStore> store_ ABSL_GUARDED_BY(mutex_);
  // Why the store is not there, or cannot be written.
  absl::Status unwritable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
