// What the tests of every JobStore share. An implementation joins by one line in JobStores().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/postgres/postgres_job_store.h"
#include "server/store/job_store.h"
#include "server/store/sqlite_job_store.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"
#include "tests/support/postgres_server.h"

namespace wan::server {

struct JobStoreKind {
  std::string name;
  // An empty store, in `folder` if it needs one.
  std::function<absl::StatusOr<std::unique_ptr<JobStore>>(const std::filesystem::path& folder)>
      open;
};

inline StoredJob NewJob(const std::string& name, const std::string& request_id = "") {
  StoredJob stored;
  stored.job.set_name(name);
  stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
  stored.job.mutable_request()->set_prompt("prompt of " + name);
  stored.job.mutable_request()->set_request_id(request_id);
  stored.request_digest = "digest of " + name;
  stored.tied_to_caller = name == "jobs/tied";
  return stored;
}

inline wan::v1::Event NewEvent(int64_t sequence) {
  wan::v1::Event event;
  event.set_sequence(sequence);
  event.mutable_stage_started()->set_stage(absl::StrCat("stage ", sequence));
  return event;
}

inline JobChange NewState(const StoredJob& stored, wan::v1::JobState state, int64_t sequence = 0) {
  JobChange change;
  change.job = stored.job.name();
  change.row = stored.job;
  change.row->set_state(state);
  if (sequence != 0) change.events.push_back(NewEvent(sequence));
  return change;
}

class JobStoreTest : public testing::TestWithParam<JobStoreKind> {
 protected:
  JobStoreTest() {
    auto opened = GetParam().open(folder_.path());
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  absl::Status Insert(const StoredJob& job, const std::string& image = "") {
    const wan::v1::Event first = NewEvent(1);
    return InsertInto(*store_, job, image, std::span(&first, 1));
  }

  absl::Status Apply(const JobChange& change) { return ApplyTo(*store_, std::span(&change, 1)); }

  std::vector<int64_t> Sequences(const std::string& job, int64_t after = 0, int limit = 100) {
    const auto events = store_->Events(job, after, limit);
    EXPECT_TRUE(events.ok()) << events.status();
    std::vector<int64_t> sequences;
    for (const wan::v1::Event& event : *events) sequences.push_back(event.sequence());
    return sequences;
  }

  std::vector<std::string> Names(const JobPage& page) {
    std::vector<std::string> names;
    for (const StoredJob& stored : page.jobs) names.push_back(stored.job.name());
    return names;
  }

  TempFolder folder_;
  std::unique_ptr<JobStore> store_;
};

inline auto JobStores() {
  return testing::Values(
      JobStoreKind{"SqliteFile",
                   [](const auto& folder) { return OpenSqliteJobStore(folder / "jobs.db"); }},
      JobStoreKind{"SqliteMemory", [](const auto&) { return OpenInMemoryJobStore(); }},
      JobStoreKind{"Postgres", [](const auto&) -> absl::StatusOr<std::unique_ptr<JobStore>> {
                     return OpenPostgresJobStore(SharedPostgresServer().NewDatabase());
                   }});
}

inline std::string NameOfJobStore(const testing::TestParamInfo<JobStoreKind>& kind) {
  return kind.param.name;
}

}  // namespace wan::server
