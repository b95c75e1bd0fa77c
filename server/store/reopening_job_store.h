// A JobStore that keeps working, as far as possible, while its file is missing or cannot be
// written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/store/job_store.h"

namespace wan::server {

// `on_write` is called after every synced change, with the change's kind and duration, on the
// thread that calls `done`.
struct StoreWatch {
  Clock* clock = nullptr;  // measures the durations; may be null
  std::function<void(std::string_view operation, absl::Duration taken)> on_write;
};

// Thread-safe. Passes every call to the store that is open. While no store is open, every call
// fails with the cause and the reason STORAGE_UNAVAILABLE; while the open store is read-only, every
// change fails in this way. The object opens a store only in Reopen.
class ReopeningJobStore final : public JobStore {
 public:
  using Opener = std::function<absl::StatusOr<std::unique_ptr<JobStore>>()>;

  // `open` opens a store for writing. `open_for_reading` is called if `open` fails with the reason
  // STORAGE_UNAVAILABLE.
  ReopeningJobStore(Opener open, Opener open_for_reading, StoreWatch watch = {})
      : open_(std::move(open)),
        open_for_reading_(std::move(open_for_reading)),
        watch_(std::move(watch)) {}

  // Opens the store for writing unless it already is open for writing. Other calls wait while
  // Reopen runs. Returns OK, or the reason why the store cannot be written. After an error with the
  // reason STORAGE_UNAVAILABLE, try again later. After any other error an operator must act: the
  // file is damaged, or another server uses the file.
  absl::Status Reopen();

  // Whether a store is open, for writing or only for reading.
  bool opened() const;

  using JobStore::Apply;
  void InsertAll(std::span<const JobAddition> additions, Done done) override;
  void Remove(std::string_view job, Done done) override;
  void Apply(std::span<const JobChange> changes, Done done) override;
  absl::StatusOr<StoredJob> Get(std::string_view job) override;
  absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner,
                                            std::string_view request_id) override;
  absl::StatusOr<JobPage> List(const JobQuery& query) override;
  absl::StatusOr<std::string> OwnerOf(std::string_view job) override;
  absl::StatusOr<std::string> SecretKey() override;
  absl::StatusOr<std::vector<StoredJob>> Unfinished() override;
  absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) override;
  absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) override;
  absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) override;
  absl::StatusOr<bool> Vacuum() override;
  absl::Status CheckWritable() override;
  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override;
  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override;
  absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) override;
  absl::StatusOr<JobInputs> Inputs(std::string_view job) override;
  WebhookOutbox& webhooks() override { return outbox_; }

 private:
  // Passes every call to the outbox of the store that is open.
  class Outbox final : public WebhookOutbox {
   public:
    explicit Outbox(ReopeningJobStore& store) : store_(store) {}
    absl::StatusOr<std::vector<QueuedWebhook>> Webhooks(int64_t after, int most) override;
    absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(int64_t number,
                                                              absl::Time due) override;
    absl::Status RemoveWebhook(int64_t number) override;

   private:
    ReopeningJobStore& store_;
  };

  template <typename Call>
  auto Read(const Call& call) -> decltype(call(std::declval<JobStore&>()));
  // Returns the store if it is open for writing. A store that is open for writing is never
  // replaced, so changes may wait for the disk without holding mutex_. (If they held mutex_, Reopen
  // and readers would wait for the changes.)
  absl::StatusOr<JobStore*> Writable() const;
  template <typename Call>
  auto Write(std::string_view operation, const Call& call)
      -> decltype(call(std::declval<JobStore&>()));
  // Calls `begin` with a `done` that reports the change to StoreWatch::on_write.
  template <typename Begin>
  void BeginWrite(std::string_view operation, Done done, const Begin& begin);
  void TellWritten(std::string_view operation, const absl::Status& status, int64_t began) const;

  const Opener open_;
  const Opener open_for_reading_;
  const StoreWatch watch_;
  Outbox outbox_{*this};
  mutable absl::Mutex mutex_;  // calls hold the mutex shared; replacing the store holds the mutex
                               // exclusively
  std::unique_ptr<JobStore> store_ ABSL_GUARDED_BY(mutex_);
  // Why no store is open for writing; OK if one is open.
  absl::Status unwritable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
