// The JobStore that servers use: one SQLite file in WAL mode, inside the process. One thread
// writes, and another thread syncs the writes. Short reads and scans have a connection each, which
// waits for neither the writes, nor the syncs, nor a checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace wan::server {

// Opens or creates the file and locks it; fails with UNAVAILABLE if another process or store has it
// open. Fails with DATA_LOSS if the file is damaged or not a database; FAILED_PRECONDITION if a
// newer version of the server wrote it. The messages of both errors name the file and say what to
// do. Fails with the reason STORAGE_UNAVAILABLE if the disk lets the store neither create nor read
// the file.
//
// A damaged row loses only its own job: the first call that reads the row moves it to the table
// damaged_jobs, and calls `on_problem` on the calling thread with no lock held.
//
// `sync` makes the file's write-ahead log durable; null means fdatasync. After a failed sync the
// store refuses writes until CheckWritable has moved the whole log into the database.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr,
    std::function<absl::Status()> sync = nullptr);

// Opens a file that this process cannot write, because the disk is read-only or permissions are
// missing. The write-ahead log is read too. Every change is refused with the reason
// STORAGE_UNAVAILABLE. The file is not locked, so another server may write it meanwhile.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStoreForReading(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr);

// Opens a store of the same kind that is only in memory, for tests.
absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore();

}  // namespace wan::server
