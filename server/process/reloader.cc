#include "server/process/reloader.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_join.h"
#include "server/config/config_change.h"

namespace wan::server {

ServerConfig Reloader::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

void Reloader::Reload(const absl::StatusOr<ServerConfig>& next) {
  const auto failed = [this](std::string_view what, const absl::Status& problem) {
    parts_.logger.Log(LogLevel::kError, "not reloaded",
                      {{"what", what}, {"error", std::string(problem.message())}});
  };
  std::vector<std::string> read;
  for (const File& file : files_) {
    if (absl::Status status = file.reload(); status.ok()) {
      read.emplace_back(file.setting);
    } else {
      failed(file.setting, status);
    }
  }
  absl::MutexLock lock(&mutex_);
  const LogLevel level_before = current_.log_level;
  ConfigChange change;
  if (next.ok()) {
    change = TakeOver(*next, current_);
    parts_.apply(current_);
  } else {
    failed("settings", next.status());
  }
  parts_.logger.SetFormat(current_.log_format);
  // Use the lower of the old and the new level, so that the entry about the reload is written.
  parts_.logger.SetLevel(std::min(level_before, current_.log_level));
  parts_.logger.Log(
      LogLevel::kInfo, "reloaded",
      {{"settings", absl::StrJoin(change.reloaded, ", ")}, {"files", absl::StrJoin(read, ", ")}});
  if (!change.needs_restart.empty()) {
    parts_.logger.Log(LogLevel::kWarning, "settings need a restart",
                      {{"settings", absl::StrJoin(change.needs_restart, ", ")}});
  }
  parts_.logger.SetLevel(current_.log_level);
}

}  // namespace wan::server
