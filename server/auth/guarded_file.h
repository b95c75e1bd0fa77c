// Reads the files of tokens and quotas, and refuses files that others could have changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// Returns the file's text. Errors: NOT_FOUND if the file does not exist; FAILED_PRECONDITION if the
// file is not a regular file, is larger than 8 MiB, or is writable by everybody; INVALID_ARGUMENT
// if the file is not UTF-8. `danger` ends the message about a file that everybody can write, for
// example "who could let themselves in".
absl::StatusOr<std::string> ReadGuardedFile(const std::string& path, std::string_view danger);

// Calls `read` with every line of `text` except empty lines and comments (#), without surrounding
// spaces; `read` returns what is wrong with the line, or nothing. If lines are wrong, returns
// INVALID_ARGUMENT, whose message has "SOURCE:LINE: PROBLEM" for each of them.
absl::Status ReadLines(std::string_view text, std::string_view source,
                       absl::FunctionRef<std::optional<std::string>(std::string_view line)> read);

}  // namespace wan::server
