// Binds a data folder to its job database: the server removes the savepoints of jobs that the
// database does not know, and shows no videos of such jobs. Also lets one server at a time use it.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/durable_file.h"

namespace wan::server {

// Checks that the folder belongs to the database that names itself so; a folder that belongs to
// none becomes the database's. An empty id stands for the SQLite file in the folder itself. Fails
// with FAILED_PRECONDITION if the folder belongs to another database.
absl::Status BindFolder(const std::filesystem::path& folder, std::string_view database_id);

// Locks the folder against other servers until the result is destroyed or the process ends. Fails
// with UNAVAILABLE if another server has the lock. The SQLite file has a lock of its own, so only
// servers whose jobs are elsewhere need this one.
absl::StatusOr<std::unique_ptr<const Descriptor>> LockFolder(const std::filesystem::path& folder);

}  // namespace wan::server
