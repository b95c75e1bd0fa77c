// Messages about files, all in one form: "path: what is wrong".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

// DATA_LOSS: the file's content contradicts itself or its format.
absl::Status Damaged(std::string_view file, std::string_view what);

// NOT_FOUND.
absl::Status Absent(std::string_view file, std::string_view what);

// UNIMPLEMENTED: sound, as far as one can see, but nothing that we serve.
absl::Status Unsupported(std::string_view file, std::string_view what);

// One status for several, at least one: the first's code, and the messages of the first few.
absl::Status Summarise(std::span<const absl::Status> problems);

// Text out of a file that may be damaged, fit for a message: control characters and bytes that are
// not ASCII escaped, long texts cut.
std::string Printable(std::string_view untrusted);

}  // namespace wan
