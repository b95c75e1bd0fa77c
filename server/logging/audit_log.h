// Writes the audit log: who called what, from where, and with which result
// (docs/operate/security.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/logging/logger.h"

namespace wan::server {

// The entry for one call. Never contains a prompt, image, label or token.
struct AuditEntry {
  std::string principal;  // empty: the caller was not identified
  std::string role;
  std::string method;    // "/wan.v1.VideoGeneration/CancelJob"
  std::string peer;      // in gRPC's form: "ipv4:192.0.2.7:41234"
  std::string resource;  // "jobs/ID" or a model's name; empty: none
  std::string code;      // "OK", "PERMISSION_DENIED"
  std::string reason;    // the error's reason; empty: none
};

// Thread-safe. Each entry is a log line with the message `audit`.
class AuditLog {
 public:
  // Writes entries to `logger`. Both must outlive the log.
  AuditLog(Logger& logger, const Clock& clock);

  // Appends entries to a file as JSON lines. Creates the file with mode 0600 if it is missing or
  // was moved away. UNAVAILABLE if it cannot be written now; later failures are logged to `logger`,
  // at most once a minute. Calls do not wait for the disk: entries go through a LineQueue, which
  // drops and counts them while it is full.
  static absl::StatusOr<std::unique_ptr<AuditLog>> ToFile(const std::string& path, Logger& logger,
                                                          Clock& clock);

  // Writes at most 100 refused calls of unknown callers in 10 s, so that they cannot fill the disk;
  // a separate entry says how many were left out.
  void Write(const AuditEntry& entry);

  // Waits for a bounded time until all earlier entries are in the file.
  void Flush();

  // Number of entries dropped by the file's queue since the start; 0 without a file.
  int64_t dropped() const { return own_ == nullptr ? 0 : own_->dropped(); }

 private:
  AuditLog(std::unique_ptr<Logger> own, const Clock& clock);
  // Whether an entry of an unknown caller may be written; sets `left_out` to the number of entries
  // left out before.
  bool HasRoom(int64_t* left_out);

  const std::unique_ptr<Logger> own_;  // null: entries go to the server's logger
  Logger& logger_;
  const Clock& clock_;
  absl::Mutex mutex_;
  int64_t window_end_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_window_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan::server
