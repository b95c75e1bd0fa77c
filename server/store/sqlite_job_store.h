// The embedded JobStore: one SQLite file in WAL mode. One thread writes, and another syncs all that
// was written meanwhile. Short reads and scans have a connection each, which waits for neither, nor
// for a checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace wan::server {

// Opens or creates the file and locks it: UNAVAILABLE if another process or store has it open.
// DATA_LOSS if the file is damaged or not a database; FAILED_PRECONDITION if a newer version of the
// server wrote it. Both messages name the file and say what to do. A status with the reason
// STORAGE_UNAVAILABLE means that the disk does not let it create or read the file.
//
// A damaged row loses only its own job: the first call that reads it moves it to the table
// damaged_jobs, and calls `on_problem` on the calling thread with no lock held.
//
// `sync` makes the file's write-ahead log durable; null means fdatasync. After a failed sync the
// store refuses writes until CheckWritable has moved the whole log into the database.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr,
    std::function<absl::Status()> sync = nullptr);

// Opens a file that this process cannot write, because the disk is read-only or permissions are
// missing. Also reads the write-ahead log. Every change is refused with the reason
// STORAGE_UNAVAILABLE. The file is not locked: another server may write it meanwhile.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStoreForReading(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr);

// Opens the same store in memory, for tests.
absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore();

}  // namespace wan::server
