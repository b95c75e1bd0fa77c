#include "server/jobs/job_ledger.h"

#include <utility>

namespace wan::server {
namespace {

JobChange RowOf(const wan::v1::Job& job, std::vector<wan::v1::Event> events = {}) {
  return {.job = job.name(), .row = job, .events = std::move(events), .report = std::nullopt};
}

JobChange EventsOf(const std::string& job, std::vector<wan::v1::Event> events) {
  return {.job = job, .row = std::nullopt, .events = std::move(events), .report = std::nullopt};
}

std::vector<wan::v1::Event> Only(wan::v1::Event event) {
  std::vector<wan::v1::Event> events;
  events.push_back(std::move(event));
  return events;
}

}  // namespace

void JobLedger::Accept(std::shared_ptr<const std::vector<JobAddition>> additions,
                       JobStore::Done done) {
  for (const JobAddition& addition : *additions) {
    log_.Open(addition.job.job.name(), addition.events.back().sequence());
  }
  const std::vector<JobAddition>& added = *additions;
  store_.InsertAll(added, [this, additions = std::move(additions),
                           done = std::move(done)](const absl::Status& inserted) {
    if (!inserted.ok()) {
      for (const JobAddition& addition : *additions) log_.Forget(addition.job.job.name());
    }
    done(inserted);
  });
}

void JobLedger::TakeOver(const wan::v1::Job& job) { log_.Open(job.name(), job.last_sequence()); }

void JobLedger::Append(const std::string& job, std::vector<wan::v1::Event> events) {
  log_.Append(EventsOf(job, std::move(events)));
}

void JobLedger::NoteFiles(const std::string& job, std::vector<JobFile> files) {
  JobChange change = EventsOf(job, {});
  change.files = std::move(files);
  log_.Append(std::move(change));
}

void JobLedger::Store(const wan::v1::Job& job) { log_.Append(RowOf(job)); }

void JobLedger::Release(const wan::v1::Job& job, std::vector<wan::v1::Event> events,
                        std::optional<wan::v1::JobReport> report) {
  JobChange change = RowOf(job, std::move(events));
  change.report = std::move(report);
  log_.Append(std::move(change));
}

void JobLedger::Change(const wan::v1::Job& job, std::vector<wan::v1::Event> events) {
  JobChange change = RowOf(job, std::move(events));
  change.labels_changed = true;
  log_.Append(std::move(change));
}

void JobLedger::Move(const std::string& job, wan::v1::Event queued) {
  log_.Append(EventsOf(job, Only(std::move(queued))));
}

void JobLedger::Finish(const wan::v1::Job& job, wan::v1::Event last,
                       std::optional<wan::v1::JobReport> report, std::function<void()> stored) {
  JobChange change = RowOf(job, Only(std::move(last)));
  change.report = std::move(report);
  log_.Append(std::move(change), std::move(stored));
}

}  // namespace wan::server
