// Reads settings and files again while the server runs, and logs what has changed.
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
  // A file whose path is the value of a setting. `reload` reads the file again; if it returns an
  // error, the content read before stays in use.
  struct File {
    std::string_view setting;
    std::function<absl::Status()> reload;
  };
  // After each change the reloader calls `apply` with the new settings, while it holds its lock;
  // `apply` must not call the reloader. The logger must outlive the reloader.
  struct Parts {
    Logger& logger;
    std::function<void(const ServerConfig& config)> apply;
  };

  // `started` are the settings with which the server was started.
  Reloader(ServerConfig started, Parts parts)
      : parts_(std::move(parts)), current_(std::move(started)) {}

  // Adds a file; call Add before the first Reload.
  void Add(File file) { files_.push_back(std::move(file)); }

  // Returns the settings in effect. A setting that needs a restart has its old value.
  ServerConfig current() const;

  // Reads the files again and applies `next`: the current settings, or the error of reading the
  // settings. After an error no setting changes. Logs the reloaded settings and files, the settings
  // that need a restart, and each failure.
  void Reload(const absl::StatusOr<ServerConfig>& next);

 private:
  const Parts parts_;
  std::vector<File> files_;
  mutable absl::Mutex mutex_;
  ServerConfig current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
