// The audit log: who called what, from where, and with which result (docs/operate/security.md).
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

// One call. It never has a prompt, image, label or token.
struct AuditEntry {
  std::string principal;  // empty: the caller was not recognised
  std::string role;
  std::string method;    // "/wan.v1.VideoGeneration/CancelJob"
  std::string peer;      // as gRPC names it: "ipv4:192.0.2.7:41234"
  std::string resource;  // "jobs/ID", a model's name; empty: none
  std::string code;      // "OK", "PERMISSION_DENIED"
  std::string reason;    // the error's reason; empty: none
};

// Thread-safe. An entry is a line of the log with the message `audit`.
class AuditLog {
 public:
  // Entries go to `logger`. Both must outlive the log.
  AuditLog(Logger& logger, const Clock& clock);

  // Appends entries to a file, as JSON; a missing file is made with mode 0600. After the file was
  // moved away, the next entry makes a new one. UNAVAILABLE if it cannot be written now. Later
  // failures are logged to `logger`, at most once a minute. No call waits for the disk: entries go
  // through a LineQueue, which drops and counts them while it is full.
  static absl::StatusOr<std::unique_ptr<AuditLog>> ToFile(const std::string& path, Logger& logger,
                                                          Clock& clock);

  // At most 100 calls of unknown callers in 10 s are written, so that they cannot fill the disk; a
  // separate entry says how many were left out.
  void Write(const AuditEntry& entry);

  // Waits, for a bounded time, until the entries so far are in the file.
  void Flush();

  // Entries of the file that were dropped since the start; 0 without a file.
  int64_t dropped() const { return own_ == nullptr ? 0 : own_->dropped(); }

 private:
  AuditLog(std::unique_ptr<Logger> own, const Clock& clock);
  // Whether an entry of an unknown caller may be written; sets `left_out` if some were left out
  // before.
  bool HasRoom(int64_t* left_out);

  const std::unique_ptr<Logger> own_;  // null: the server's
  Logger& logger_;
  const Clock& clock_;
  absl::Mutex mutex_;
  int64_t window_end_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_window_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan::server
