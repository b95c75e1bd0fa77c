#include "server/store/reopening_job_store.h"

#include <type_traits>

#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {

absl::Status ReopeningJobStore::Reopen() {
  absl::MutexLock lock(&mutex_);
  if (store_ != nullptr && unwritable_.ok()) return absl::OkStatus();
  // Close the read-only store first, because closing a file drops all locks that this process has
  // on the file, even those of another store.
  store_ = nullptr;
  absl::StatusOr<std::unique_ptr<JobStore>> opened = open_();
  unwritable_ = opened.status();
  if (opened.ok()) {
    store_ = *std::move(opened);
  } else if (ReasonOf(unwritable_) == kReasonStorageUnavailable) {
    absl::StatusOr<std::unique_ptr<JobStore>> readable = open_for_reading_();
    if (readable.ok()) store_ = *std::move(readable);
  }
  return unwritable_;
}

bool ReopeningJobStore::opened() const {
  absl::ReaderMutexLock lock(&mutex_);
  return store_ != nullptr;
}

template <typename Call>
auto ReopeningJobStore::Read(const Call& call) -> decltype(call(std::declval<JobStore&>())) {
  absl::ReaderMutexLock lock(&mutex_);
  if (store_ == nullptr) return unwritable_;
  return call(*store_);
}

absl::StatusOr<JobStore*> ReopeningJobStore::Writable() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (!unwritable_.ok()) return unwritable_;
  return store_.get();
}

void ReopeningJobStore::TellWritten(std::string_view operation, const absl::Status& status,
                                    int64_t began) const {
  if (watch_.clock == nullptr || !status.ok()) return;
  watch_.on_write(operation, absl::Nanoseconds(watch_.clock->MonotonicNanos() - began));
}

template <typename Call>
auto ReopeningJobStore::Write(std::string_view operation, const Call& call)
    -> decltype(call(std::declval<JobStore&>())) {
  const absl::StatusOr<JobStore*> store = Writable();
  if (!store.ok()) return store.status();
  const int64_t began = watch_.clock == nullptr ? 0 : watch_.clock->MonotonicNanos();
  auto result = call(**store);
  if constexpr (std::is_same_v<decltype(result), absl::Status>) {
    TellWritten(operation, result, began);
  } else {
    TellWritten(operation, result.status(), began);
  }
  return result;
}

template <typename Begin>
void ReopeningJobStore::BeginWrite(std::string_view operation, Done done, const Begin& begin) {
  const absl::StatusOr<JobStore*> store = Writable();
  if (!store.ok()) {
    done(store.status());
    return;
  }
  const int64_t began = watch_.clock == nullptr ? 0 : watch_.clock->MonotonicNanos();
  begin(**store, [this, operation = std::string(operation), done = std::move(done),
                  began](const absl::Status& status) {
    TellWritten(operation, status, began);
    done(status);
  });
}

void ReopeningJobStore::InsertAll(std::span<const JobAddition> additions, Done done) {
  BeginWrite("insert", std::move(done),
             [&](JobStore& store, Done told) { store.InsertAll(additions, std::move(told)); });
}

void ReopeningJobStore::Remove(std::string_view job, Done done) {
  BeginWrite("remove", std::move(done),
             [&](JobStore& store, Done told) { store.Remove(job, std::move(told)); });
}

void ReopeningJobStore::Apply(std::span<const JobChange> changes, Done done) {
  BeginWrite("apply", std::move(done),
             [&](JobStore& store, Done told) { store.Apply(changes, std::move(told)); });
}

absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> ReopeningJobStore::TotalsOfEnded(
    const std::optional<std::string>& owner) {
  return Read([&](JobStore& store) { return store.TotalsOfEnded(owner); });
}

absl::StatusOr<std::vector<EndedJob>> ReopeningJobStore::OldestEnded(const EndedQuery& query) {
  return Read([&](JobStore& store) { return store.OldestEnded(query); });
}

absl::StatusOr<std::vector<PrincipalUse>> ReopeningJobStore::UseOfRemoved(absl::Time since) {
  return Read([&](JobStore& store) { return store.UseOfRemoved(since); });
}

absl::StatusOr<bool> ReopeningJobStore::Vacuum() {
  return Write("vacuum", [](JobStore& store) { return store.Vacuum(); });
}

absl::Status ReopeningJobStore::CheckWritable() {
  return Write("check", [](JobStore& store) { return store.CheckWritable(); });
}

absl::StatusOr<StoredJob> ReopeningJobStore::Get(std::string_view job) {
  return Read([&](JobStore& store) { return store.Get(job); });
}

absl::StatusOr<StoredJob> ReopeningJobStore::FindByRequestId(std::string_view owner,
                                                             std::string_view request_id) {
  return Read([&](JobStore& store) { return store.FindByRequestId(owner, request_id); });
}

absl::StatusOr<JobPage> ReopeningJobStore::List(const JobQuery& query) {
  return Read([&](JobStore& store) { return store.List(query); });
}

absl::StatusOr<std::string> ReopeningJobStore::OwnerOf(std::string_view job) {
  return Read([&](JobStore& store) { return store.OwnerOf(job); });
}

absl::StatusOr<std::string> ReopeningJobStore::SecretKey() {
  return Read([](JobStore& store) { return store.SecretKey(); });
}

absl::StatusOr<std::vector<StoredJob>> ReopeningJobStore::Unfinished() {
  return Read([](JobStore& store) { return store.Unfinished(); });
}

absl::StatusOr<std::vector<wan::v1::Event>> ReopeningJobStore::Events(std::string_view job,
                                                                      int64_t after, int limit) {
  return Read([&](JobStore& store) { return store.Events(job, after, limit); });
}

absl::StatusOr<wan::v1::JobReport> ReopeningJobStore::Report(std::string_view job) {
  return Read([&](JobStore& store) { return store.Report(job); });
}

absl::StatusOr<std::vector<JobFile>> ReopeningJobStore::Files(std::string_view job) {
  return Read([&](JobStore& store) { return store.Files(job); });
}

absl::StatusOr<JobInputs> ReopeningJobStore::Inputs(std::string_view job) {
  return Read([&](JobStore& store) { return store.Inputs(job); });
}

absl::StatusOr<std::optional<PendingWebhook>> ReopeningJobStore::Outbox::TakeWebhook(
    int64_t number, absl::Time due) {
  return store_.Write("webhook",
                      [&](JobStore& store) { return store.webhooks().TakeWebhook(number, due); });
}

absl::StatusOr<std::vector<QueuedWebhook>> ReopeningJobStore::Outbox::Webhooks(int64_t after,
                                                                               int most) {
  return store_.Read([&](JobStore& store) { return store.webhooks().Webhooks(after, most); });
}

absl::Status ReopeningJobStore::Outbox::RemoveWebhook(int64_t number) {
  return store_.Write("webhook",
                      [&](JobStore& store) { return store.webhooks().RemoveWebhook(number); });
}

}  // namespace wan::server
