// A folder for files that a command needs only while it runs.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace wan::client {

// The folder and its files go with this object.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  // Creates the folder; does nothing if it is there. INTERNAL, naming it, if that fails.
  absl::Status Create();
  // Call this only after Create.
  std::filesystem::path File(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace wan::client
