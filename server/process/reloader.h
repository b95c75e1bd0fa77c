// Applies changed settings and files while the server runs, and logs them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/config/server_config.h"
#include "server/logging/logger.h"

namespace wan::server {

// Thread-safe.
class Reloader {
 public:
  // A file that a setting names. `reload` reads it again and says why it cannot be used; what it
  // held before then stays.
  struct File {
    std::string_view setting;
    std::function<absl::Status()> reload;
  };
  // `apply` is called with the settings that hold after each change of them, with the lock held; it
  // must not call the reloader. The logger must outlive the object.
  struct Parts {
    Logger& logger;
    std::function<void(const ServerConfig& config)> apply;
  };

  // `started` are the settings with which the server starts.
  Reloader(ServerConfig started, Parts parts)
      : parts_(std::move(parts)), current_(std::move(started)) {}

  // Call it before the first Reload.
  void Add(File file) { files_.push_back(std::move(file)); }

  // The settings in effect. Those that need a restart have the values of the start.
  ServerConfig current() const;

  // Reads the files again and takes over `next`: the settings as they are written now, or why they
  // cannot be read, which changes none. The log has what was reloaded, which settings need a
  // restart, and each failure.
  void Reload(const absl::StatusOr<ServerConfig>& next);

 private:
  const Parts parts_;
  std::vector<File> files_;
  mutable absl::Mutex mutex_;
  ServerConfig current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
