// A folder with the file of a SQLite store.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/store/job_store.h"
#include "tests/server/jobs/test_support.h"
#include "tests/server/store/blocking_writes.h"

namespace wan::server {

class SqliteJobStoreTest : public testing::Test {
 protected:
  static absl::Status Fill(JobStore& store, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      StoredJob stored;
      stored.job.set_name(absl::StrCat("jobs/", i));
      stored.job.set_state(wan::v1::JOB_STATE_QUEUED);
      stored.job.mutable_request()->set_prompt(std::string(500, 'p'));
      stored.job.mutable_request()->set_request_id(absl::StrCat("request ", i));
      wan::v1::Event event;
      event.set_sequence(1);
      const absl::Status status = InsertInto(store, stored, "image", std::span(&event, 1));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Overwrites a part of the file.
  void Damage(uint64_t offset, size_t bytes) {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << std::string(bytes, '\xa5');
  }

  TempFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "jobs.db";
};

}  // namespace wan::server
