// Says in an operator's words why a path does not give the file or folder that is wanted. Every
// reader of a file that an operator names uses these functions, so that one mistake has one name
// everywhere. All functions are thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

enum class PathKind { kFile, kFolder };

// Returns OK if `path` is there, is of this kind and may be read. Otherwise the first thing on the
// way that is wrong, as "PATH: WHAT": NOT_FOUND for what does not exist and for a link whose target
// does not exist (the message names the target), PERMISSION_DENIED for what this process may not
// read, FAILED_PRECONDITION for a file in place of a folder and the reverse.
absl::Status CheckPath(const std::string& path, PathKind kind);

// Returns whether there is something at `path`, even a link whose target does not exist. Ask this
// whether an optional file was given: a link to nothing was.
bool IsGiven(const std::string& path);

// What a file is expected to hold.
enum class FileContent {
  kSafetensors,
  kTorchArchive,  // a zip archive of torch.save
  kJson,
  kYaml,
  kSentencePiece,  // a protobuf message
  kImage,
};

// The number of bytes from a file's beginning that NameForeignContent looks at.
inline constexpr size_t kForeignContentBytes = 512;

// Names the real kind of a file that should be of another, from its first bytes: "is a Git LFS
// pointer, not the file: run git lfs pull". Empty if they show nothing else. `beginning` has
// kForeignContentBytes bytes, or the whole file if that is shorter.
std::string NameForeignContent(std::string_view beginning, FileContent expected);

}  // namespace wan
