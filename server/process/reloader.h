// Reloads settings and files while the server runs, and logs what changed.
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
  // A file that a setting names. `reload` reads it again; if it returns an error, the old content
  // stays in use.
  struct File {
    std::string_view setting;
    std::function<absl::Status()> reload;
  };
  // `apply` is called with the new settings after each change, with the lock held; it must not call
  // the reloader. The logger must outlive the object.
  struct Parts {
    Logger& logger;
    std::function<void(const ServerConfig& config)> apply;
  };

  // `started` are the settings with which the server was started.
  Reloader(ServerConfig started, Parts parts)
      : parts_(std::move(parts)), current_(std::move(started)) {}

  // Call it before the first Reload.
  void Add(File file) { files_.push_back(std::move(file)); }

  // Returns the settings in effect. Settings that need a restart have their old values.
  ServerConfig current() const;

  // Reads the files again and applies `next`, the current content of the settings, or the error of
  // reading them, which changes no setting. Logs what was reloaded, which settings need a restart,
  // and each failure.
  void Reload(const absl::StatusOr<ServerConfig>& next);

 private:
  const Parts parts_;
  std::vector<File> files_;
  mutable absl::Mutex mutex_;
  ServerConfig current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
