// Stores objects as files of a folder, which several machines may share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/objects/object_store.h"

namespace wan::server {

// See ObjectStore. Every key is the path of a file below the folder; a name ends with ".new" while
// its file is written, so no key may end so. If a process dies meanwhile, the unfinished file stays
// until its key is stored or removed, or RemovePrefix removes a folder that has it. A call ends
// when the file system does: it looks at neither patience nor stop. Only one server at a time may
// write one key.
class FolderObjectStore final : public ObjectStore {
 public:
  // Does not touch the disk. Somebody else makes the folder: while it is missing, for example
  // because a share is not mounted, every call fails with UNAVAILABLE. Put creates the folders
  // below it.
  explicit FolderObjectStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns UNAVAILABLE if the folder is missing.
  absl::Status CheckFolder() const;

  std::string Name() const override;
  absl::Status Put(const std::string& key, std::string_view bytes, const ObjectCall& call) override;
  absl::Status PutFile(const std::string& key, const std::filesystem::path& file,
                       const ObjectCall& call) override;
  absl::Status Get(const std::string& key, const ObjectRange& range, const Sink& sink,
                   const ObjectCall& call) override;
  absl::StatusOr<ObjectFacts> Stat(const std::string& key, const ObjectCall& call) override;
  absl::Status List(const std::string& prefix, const std::function<bool(const ObjectFacts&)>& visit,
                    const ObjectCall& call) override;
  absl::Status Remove(const std::string& key, const ObjectCall& call) override;
  // Removes the whole folder of a prefix that ends with '/'.
  absl::Status RemovePrefix(const std::string& prefix, const ObjectCall& call) override;

 private:
  // Returns the path of the key after its folders were made.
  absl::StatusOr<std::filesystem::path> PathForWriting(const std::string& key) const;
  // Removes a folder below folder_ and those above it, up to one that is not empty.
  void RemoveEmpty(std::filesystem::path folder) const;

  const std::filesystem::path folder_;
};

}  // namespace wan::server
