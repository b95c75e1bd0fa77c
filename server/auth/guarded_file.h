// Reads the files of tokens and quotas, and refuses one that others could have changed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Returns the file's text. NOT_FOUND if there is no such file; FAILED_PRECONDITION if it is not a
// regular file, is larger than 8 MiB, or is writable by everybody; INVALID_ARGUMENT if it is not
// UTF-8; `danger` says in a clause what everybody could do then ("who could let themselves in").
absl::StatusOr<std::string> ReadGuardedFile(const std::string& path, std::string_view danger);

}  // namespace wan::server
