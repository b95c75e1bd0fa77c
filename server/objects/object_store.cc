#include "server/objects/object_store.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace wan::server {
namespace {

bool IsName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

absl::Status CheckObjectKey(std::string_view key) {
  const std::vector<absl::string_view> names =
      absl::StrSplit(absl::string_view(key.data(), key.size()), '/');
  if (std::all_of(names.begin(), names.end(), &IsName)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the object's key is '", std::string(key),
                   "'; must be names of letters, digits, '.', '_' and '-' between slashes, for "
                   "example artifacts/5f0c/1/video.mp4"));
}

absl::Status ObjectStore::RemovePrefix(const std::string& prefix, const ObjectCall& call) {
  std::vector<std::string> keys;
  absl::Status status = List(
      prefix,
      [&](const ObjectFacts& object) {
        keys.push_back(object.key);
        return true;
      },
      call);
  for (size_t i = 0; i < keys.size() && status.ok(); ++i) status = Remove(keys[i], call);
  return status;
}

absl::StatusOr<std::string> ObjectStore::Read(const std::string& key, uint64_t most,
                                              const ObjectCall& call) {
  std::string bytes;
  absl::Status status = Get(
      key, {},
      [&](std::string_view piece) {
        if (piece.size() > most - bytes.size()) {
          return absl::OutOfRangeError(
              absl::StrCat(key, " in ", Name(), " has more than ", most, " bytes"));
        }
        bytes.append(piece);
        return absl::OkStatus();
      },
      call);
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace wan::server
