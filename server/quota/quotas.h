// Holds the quotas that are in force, and reads their file again when it changes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/auth/file_stamp.h"
#include "server/quota/quota_file.h"

namespace wan::server {

// Thread-safe.
class Quotas {
 public:
  // Makes an object whose quotas limit nothing.
  Quotas();

  // The functions of the listener run on the thread that called Refresh, with no lock held.
  struct Listener {
    // Quotas calls on_change when the quotas may have changed.
    std::function<void()> on_change = [] {};
    // Quotas calls on_problem with the error when the file has changed and is invalid; the quotas
    // read before stay in force.
    std::function<void(const absl::Status&)> on_problem = [](const absl::Status&) {};
  };
  // Reads the quota file for the first time. Returns ReadQuotaFile's errors, each beginning with
  // the setting `quotas`.
  static absl::StatusOr<std::unique_ptr<Quotas>> Open(std::string path, Listener listener);

  Quotas(const Quotas&) = delete;
  Quotas& operator=(const Quotas&) = delete;

  // Reads the quota file again if it has changed since the last call. If the changed file is
  // invalid, the quotas read before stay in force.
  void Refresh();
  // Reads the quota file again even if it has not changed, and calls on_change. Returns an error if
  // the file is invalid; the quotas read before then stay in force. Does nothing and returns OK if
  // the server has no quota file.
  absl::Status Reload();

  // Returns the principal's quota. Reads no file, so it may be called with any lock held. The empty
  // principal stands for all callers of a server that does not authenticate them.
  wan::v1::Quota Of(std::string_view principal) const;

 private:
  const std::string path_;  // empty: the server has no quota file
  Listener listener_;
  mutable absl::Mutex mutex_;
  FileStamp stamp_ ABSL_GUARDED_BY(mutex_);
  QuotaTable table_ ABSL_GUARDED_BY(mutex_);

  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Quotas(std::string path, Listener listener)
      : path_(std::move(path)), listener_(std::move(listener)) {}
};

}  // namespace wan::server
