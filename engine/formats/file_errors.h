// Makes errors about files. Every message has the form "PATH: WHAT IS WRONG". All functions are
// thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/api/file_problem.h"

namespace wan {

// Returns DATA_LOSS with this message. Use it for content that contradicts itself or its format.
absl::Status Damaged(std::string_view file, std::string_view what);

// Returns NOT_FOUND with this message. Use it for a file, or a part of a file, that does not exist.
absl::Status Absent(std::string_view file, std::string_view what);

// Returns UNIMPLEMENTED with this message. Use it for content that seems valid but that the engine
// does not support.
absl::Status Unsupported(std::string_view file, std::string_view what);

// Returns DATA_LOSS if `bytes`, the beginning of a file, look like another kind of file than
// `expected`, for example like a Git LFS pointer. If the function returns OK, the rest of the file
// may still be wrong.
absl::Status CheckNotForeign(std::string_view file, std::span<const std::byte> bytes,
                             FileContent expected);

// Combines `problems`, which must not be empty, into one status. The status has the code of the
// first problem, the messages of the first three, and the number of further problems.
absl::Status Summarise(std::span<const absl::Status> problems);

// Makes untrusted text suitable for a message: escapes control characters and non-ASCII characters,
// and cuts the text to 120 bytes.
std::string Printable(std::string_view untrusted);

}  // namespace wan
