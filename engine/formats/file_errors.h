// Errors about files. Every message has the form "PATH: WHAT IS WRONG". All functions are
// thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/api/file_problem.h"

namespace wan {

// Returns DATA_LOSS. The content of the file contradicts itself or its format.
absl::Status Damaged(std::string_view file, std::string_view what);

// Returns NOT_FOUND. The file, or a part of it, does not exist.
absl::Status Absent(std::string_view file, std::string_view what);

// Returns UNIMPLEMENTED. The file seems to be sound, but the engine does not support its content.
absl::Status Unsupported(std::string_view file, std::string_view what);

// Returns DATA_LOSS if `bytes`, the content of the file, begin like a file of another kind than
// `expected`, such as a Git LFS pointer. OK otherwise, which does not say that the content is good.
absl::Status CheckNotForeign(std::string_view file, std::span<const std::byte> bytes,
                             FileContent expected);

// Returns one status for all `problems`, of which there must be at least one: it has the code of
// the first problem, the messages of the first three and the number of the others.
absl::Status Summarise(std::span<const absl::Status> problems);

// Makes text from a file that is not trusted fit for a message: escapes control characters and
// bytes that are not ASCII, and cuts text that is longer than 120 bytes.
std::string Printable(std::string_view untrusted);

}  // namespace wan
