// A folder for files that a command needs only while it runs.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace wan::client {

// The destructor removes the folder and its files.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  // Creates the folder; does nothing if it is there. Returns INTERNAL, which names the folder, if
  // the folder cannot be created.
  absl::Status Create();
  // Call this only after Create.
  std::filesystem::path File(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace wan::client
