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

// Returns DATA_LOSS. The file's content contradicts itself or its format.
absl::Status Damaged(std::string_view file, std::string_view what);

// Returns NOT_FOUND. The file, or a part of it, does not exist.
absl::Status Absent(std::string_view file, std::string_view what);

// Returns UNIMPLEMENTED. The file seems valid, but the engine does not support its content.
absl::Status Unsupported(std::string_view file, std::string_view what);

// Returns DATA_LOSS if `bytes`, the beginning of the file, look like another kind of file than
// `expected`, for example a Git LFS pointer. OK says nothing about the rest.
absl::Status CheckNotForeign(std::string_view file, std::span<const std::byte> bytes,
                             FileContent expected);

// Combines `problems`, at least one, into one status with the code of the first, the messages of
// the first three, and the number of the others.
absl::Status Summarise(std::span<const absl::Status> problems);

// Makes untrusted text fit for a message: escapes control and non-ASCII characters, and cuts it to
// 120 bytes.
std::string Printable(std::string_view untrusted);

}  // namespace wan
