// Explains, in an operator's terms, why a path is not the wanted file or folder. All code that
// reads files named by an operator uses this, so that a mistake has the same message everywhere.
// All functions are thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

enum class PathKind { kFile, kFolder };

// Returns OK if `path` exists, is of this kind and is readable. Otherwise returns the first problem
// along the path, as "PATH: WHAT": NOT_FOUND if something does not exist, including a link's target
// (which the message names), PERMISSION_DENIED if this process may not read it, FAILED_PRECONDITION
// for a file instead of a folder or the reverse.
absl::Status CheckPath(const std::string& path, PathKind kind);

// Returns whether `path` exists, even as a link whose target does not. Use it to decide whether an
// optional file was given: a broken link was.
bool IsGiven(const std::string& path);

// What a file is expected to hold.
enum class FileContent {
  kSafetensors,
  kTorchArchive,  // a zip archive written by torch.save
  kJson,
  kYaml,
  kSentencePiece,  // a protobuf message
  kImage,
};

// How many bytes at a file's beginning NameForeignContent looks at.
inline constexpr size_t kForeignContentBytes = 512;

// Says what a file really is that should be `expected`, from its first bytes: "is a Git LFS
// pointer, not the file: run git lfs pull". Empty if the bytes show nothing else. `beginning` has
// kForeignContentBytes bytes, or the whole file if it is shorter.
std::string NameForeignContent(std::string_view beginning, FileContent expected);

}  // namespace wan
