// The embedded JobStore: one SQLite file in WAL mode, synced at every commit.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace wan::server {

// Opens or creates the file and holds it exclusively: a second process (or a second store) gets
// UNAVAILABLE. DATA_LOSS if the file is damaged or no database, FAILED_PRECONDITION if a newer
// version of the server wrote it; both name the file and say what to do. Any status with the reason
// STORAGE_UNAVAILABLE: the disk refuses to create or read it.
//
// A single row that is damaged costs its own job only: whichever call comes upon it moves it to the
// table damaged_jobs, and `on_problem` is told once, from that call's thread with no lock held.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr);

// Opens a file that this process cannot write: on a read-only disk, or with rights that do not
// suffice. What the write-ahead log holds is read as well. Every change is refused with the reason
// STORAGE_UNAVAILABLE. Nothing keeps another server from writing the file meanwhile.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStoreForReading(
    const std::filesystem::path& file,
    std::function<void(const absl::Status&)> on_problem = nullptr);

// The same store in memory, for tests and for servers that need not survive.
absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore();

}  // namespace wan::server
