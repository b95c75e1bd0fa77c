// Binds a data folder to its job database: the server removes the files of jobs that the database
// does not know, so with another database it would remove all videos.
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/status.h"

namespace wan::server {

// Checks that the folder belongs to the database that names itself so; a folder that belongs to
// none becomes the database's. An empty id stands for the SQLite file in the folder itself. Fails
// with FAILED_PRECONDITION if the folder belongs to another database.
absl::Status BindFolder(const std::filesystem::path& folder, std::string_view database_id);

}  // namespace wan::server
