// Explains to an operator why a path is not the file or folder that it should be. All code that
// reads files named by an operator uses these functions, so that the same mistake has the same
// message everywhere. All functions are thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

enum class PathKind { kFile, kFolder };

// Returns OK if `path` exists, has the given kind and is readable. Otherwise returns the first
// problem along the path, as "PATH: PROBLEM". NOT_FOUND if a part of the path, or a link's target
// (which the message names), does not exist. PERMISSION_DENIED if this process may not read it.
// FAILED_PRECONDITION for a file where a folder is wanted, and the reverse.
absl::Status CheckPath(const std::string& path, PathKind kind);

// Returns whether `path` exists. A link exists even if its target does not. Use it to decide
// whether the operator gave an optional file: a broken link counts as given.
bool IsGiven(const std::string& path);

// The content that a file is expected to have.
enum class FileContent {
  kSafetensors,
  kTorchArchive,  // a zip archive written by torch.save
  kGguf,
  kJson,
  kYaml,
  kSentencePiece,  // a protobuf message
  kImage,
};

// The number of bytes at a file's beginning that NameForeignContent examines.
inline constexpr size_t kForeignContentBytes = 512;

// Returns a message if the first bytes show that a file does not have the content `expected`, for
// example "is a Git LFS pointer, not the file: run git lfs pull". Returns an empty text if the
// bytes may be `expected`, or are unknown. `beginning` holds kForeignContentBytes bytes, or the
// whole file if it is shorter.
std::string NameForeignContent(std::string_view beginning, FileContent expected);

}  // namespace wan
