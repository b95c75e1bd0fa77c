#include "server/store/folder_object_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = ".new";
constexpr size_t kPieceBytes = size_t{1} << 20;

absl::Status NotFound(const std::string& key, const std::string& name) {
  return absl::NotFoundError(absl::StrCat("objects: ", key, " does not exist in ", name));
}

absl::Status CheckKey(const std::string& key) {
  if (absl::Status status = CheckObjectKey(key); !status.ok()) return status;
  if (!key.ends_with(kUnfinished)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the object's key is '", key, "'; must not end with ", kUnfinished));
}

fs::path Unfinished(fs::path path) { return path += kUnfinished; }

absl::Status CopyInPlace(const fs::path& file, const fs::path& beside, const fs::path& path) {
  std::error_code error;
  fs::copy_file(file, beside, fs::copy_options::overwrite_existing, error);
  if (error) return ErrnoError(absl::StrCat("copying ", file.string()), error.value());
  if (absl::Status status = SyncPath(beside); !status.ok()) return status;
  fs::rename(beside, path, error);
  if (error) return ErrnoError(absl::StrCat("renaming ", beside.string()), error.value());
  return absl::OkStatus();
}

}  // namespace

std::string FolderObjectStore::Name() const { return absl::StrCat("file://", folder_.string()); }

absl::Status FolderObjectStore::CheckFolder() const {
  std::error_code error;
  if (fs::is_directory(folder_, error)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("objects: the folder ", folder_.string(),
                                             " is not there; make the folder, or mount it"));
}

absl::StatusOr<fs::path> FolderObjectStore::PathForWriting(const std::string& key) const {
  if (absl::Status status = CheckKey(key); !status.ok()) return status;
  if (absl::Status status = CheckFolder(); !status.ok()) return status;
  fs::path path = folder_ / key;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return ErrnoError(absl::StrCat("making ", path.parent_path().string()), error.value());
  }
  return path;
}

absl::Status FolderObjectStore::Put(const std::string& key, std::string_view bytes,
                                    const ObjectCall& /*call*/) {
  const absl::StatusOr<fs::path> path = PathForWriting(key);
  return path.ok() ? ReplaceFile(*path, {}, bytes) : path.status();
}

absl::Status FolderObjectStore::PutFile(const std::string& key, const fs::path& file,
                                        const ObjectCall& /*call*/) {
  const absl::StatusOr<fs::path> path = PathForWriting(key);
  if (!path.ok()) return path.status();
  const fs::path beside = Unfinished(*path);
  if (absl::Status status = CopyInPlace(file, beside, *path); !status.ok()) {
    std::error_code ignored;  // Remove and RemovePrefix try again
    fs::remove(beside, ignored);
    return status;
  }
  return SyncPath(path->parent_path());
}

absl::Status FolderObjectStore::Get(const std::string& key, const ObjectRange& range,
                                    const Sink& sink, const ObjectCall& call) {
  const absl::StatusOr<ObjectFacts> facts = Stat(key, call);
  if (!facts.ok()) return facts.status();
  if (range.offset > facts->size) {
    return absl::OutOfRangeError(absl::StrCat("objects: the offset is past the end of ", key));
  }
  errno = 0;
  std::ifstream file(folder_ / key, std::ios::binary);
  if (!file) return ErrnoError(absl::StrCat("opening ", key), errno == 0 ? EIO : errno);
  file.seekg(static_cast<std::streamoff>(range.offset));
  std::string piece;
  for (uint64_t left = std::min(range.bytes, facts->size - range.offset); left > 0;
       left -= piece.size()) {
    piece.resize(std::min<uint64_t>(left, kPieceBytes));
    if (!file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      return ErrnoError(absl::StrCat("reading ", key), EIO);
    }
    if (absl::Status status = sink(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ObjectFacts> FolderObjectStore::Stat(const std::string& key,
                                                    const ObjectCall& /*call*/) {
  if (absl::Status status = CheckKey(key); !status.ok()) return status;
  std::error_code error;
  const uint64_t size = fs::file_size(folder_ / key, error);
  if (!error) return ObjectFacts{key, size};
  if (error == std::errc::no_such_file_or_directory || error == std::errc::is_a_directory ||
      error == std::errc::not_a_directory) {
    const absl::Status folder = CheckFolder();
    return folder.ok() ? NotFound(key, Name()) : folder;
  }
  return ErrnoError(absl::StrCat("reading ", key), error.value());
}

absl::Status FolderObjectStore::List(const std::string& prefix,
                                     const std::function<bool(const ObjectFacts&)>& visit,
                                     const ObjectCall& /*call*/) {
  if (absl::Status status = CheckFolder(); !status.ok()) return status;
  const fs::path begin = folder_ / prefix.substr(0, prefix.rfind('/') + 1);
  std::error_code error;
  std::map<std::string, uint64_t> found;  // sorted by key
  for (fs::recursive_directory_iterator entry(begin, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string key = entry->path().lexically_relative(folder_).string();
    std::error_code gone;  // the file may be removed meanwhile
    if (!key.starts_with(prefix) || key.ends_with(kUnfinished)) continue;
    if (!entry->is_regular_file(gone) || gone) continue;
    found[key] = entry->file_size(gone);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoError(absl::StrCat("listing ", begin.string()), error.value());
  }
  for (const auto& [key, size] : found) {
    if (!visit({key, size})) break;
  }
  return absl::OkStatus();
}

absl::Status FolderObjectStore::Remove(const std::string& key, const ObjectCall& /*call*/) {
  if (absl::Status status = CheckKey(key); !status.ok()) return status;
  if (absl::Status status = CheckFolder(); !status.ok()) return status;
  const fs::path path = folder_ / key;
  for (const fs::path& file : {path, Unfinished(path)}) {
    std::error_code error;
    fs::remove(file, error);
    if (error && error != std::errc::not_a_directory) {
      return ErrnoError(absl::StrCat("removing ", file.string()), error.value());
    }
  }
  RemoveEmpty(fs::path(key).parent_path());
  return absl::OkStatus();
}

absl::Status FolderObjectStore::RemovePrefix(const std::string& prefix, const ObjectCall& call) {
  if (!prefix.ends_with('/')) return ObjectStore::RemovePrefix(prefix, call);
  const std::string name = prefix.substr(0, prefix.size() - 1);
  if (absl::Status status = CheckObjectKey(name); !status.ok()) return status;
  if (absl::Status status = CheckFolder(); !status.ok()) return status;
  const fs::path path = folder_ / name;
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (found.type() == fs::file_type::not_found) return absl::OkStatus();
  if (fs::is_directory(found)) fs::remove_all(path, error);
  if (error) return ErrnoError(absl::StrCat("removing ", path.string()), error.value());
  RemoveEmpty(fs::path(name).parent_path());
  return absl::OkStatus();
}

void FolderObjectStore::RemoveEmpty(fs::path folder) const {
  while (!folder.empty() && rmdir((folder_ / folder).c_str()) == 0) folder = folder.parent_path();
}

}  // namespace wan::server
