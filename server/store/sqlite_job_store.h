// The embedded JobStore: one SQLite file in WAL mode, synced at every commit.
#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace wan::server {

// Opens or creates the file and holds it exclusively: a second process (or a second store) gets
// UNAVAILABLE. DATA_LOSS if the file is damaged or no database, FAILED_PRECONDITION if a newer
// version of the server wrote it; both name the file and say what to do.
absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(const std::filesystem::path& file);

// The same store in memory, for tests and for servers that need not survive.
absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore();

}  // namespace wan::server
