// Checks the URL of a job database in PostgreSQL.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan::server {

// Fails with INVALID_ARGUMENT unless `url` is a postgresql:// URL without a password. The message
// continues a sentence that begins with the setting's name; it shows nothing of the URL, which may
// contain a password.
absl::Status CheckPostgresUrl(const std::string& url);

}  // namespace wan::server
