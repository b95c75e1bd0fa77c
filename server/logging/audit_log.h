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

// The audit log's entry for one call. An entry never contains a prompt, image, label or token.
struct AuditEntry {
  std::string principal;  // the caller's principal; empty: the caller was not identified
  std::string role;
  std::string method;    // for example "/wan.v1.VideoGeneration/CancelJob"
  std::string peer;      // the caller's address in gRPC's form: "ipv4:192.0.2.7:41234"
  std::string resource;  // the object of the call, "jobs/ID" or a model's name; empty: the call has
                         // no object
  std::string code;      // the result, for example "OK" or "PERMISSION_DENIED"
  std::string reason;    // the reason in the error; empty: the call had no error
};

// Thread-safe. Each entry is a log line whose message is `audit`.
class AuditLog {
 public:
  // Writes the entries to `logger`. Logger and clock must outlive the audit log.
  AuditLog(Logger& logger, const Clock& clock);

  // Appends the entries to a file as JSON lines. Creates the file with mode 0600 if the file is
  // missing or was moved away. Fails with UNAVAILABLE if the file cannot be written now; later
  // failures are logged to `logger`, at most once a minute. Calls do not wait for the disk: entries
  // go through a LineQueue, which drops entries and counts them while it is full.
  static absl::StatusOr<std::unique_ptr<AuditLog>> ToFile(const std::string& path, Logger& logger,
                                                          Clock& clock);

  // Writes an entry. Writes at most 100 entries in 10 s about refused calls of unknown callers, so
  // that these callers cannot fill the disk; a separate entry has the number of entries left out.
  void Write(const AuditEntry& entry);

  // Waits for a bounded time until all earlier entries are in the file.
  void Flush();

  // How many entries the file's queue has dropped since the start; 0 if there is no file.
  int64_t dropped() const { return own_ == nullptr ? 0 : own_->dropped(); }

 private:
  AuditLog(std::unique_ptr<Logger> own, const Clock& clock);
  // Whether an entry of an unknown caller may be written; stores in `left_out` how many entries
  // were left out before.
  bool HasRoom(int64_t* left_out);

  const std::unique_ptr<Logger> own_;  // null: entries go to the server's log
  Logger& logger_;
  const Clock& clock_;
  absl::Mutex mutex_;
  int64_t window_end_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_window_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan::server
