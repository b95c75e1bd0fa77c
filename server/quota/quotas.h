// Holds the quotas that apply now and reads their file again when it changes.
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
  // Makes quotas that limit nothing.
  Quotas();

  // Called on the thread that called Refresh, with no lock held.
  struct Listener {
    // The quotas may have changed.
    std::function<void()> on_change = [] {};
    // The file has changed and cannot be used; the quotas stay as they were.
    std::function<void(const absl::Status&)> on_problem = [](const absl::Status&) {};
  };
  // Reads the file. Returns ReadQuotaFile's errors, each beginning with the setting `quotas`.
  static absl::StatusOr<std::unique_ptr<Quotas>> Open(std::string path, Listener listener);

  Quotas(const Quotas&) = delete;
  Quotas& operator=(const Quotas&) = delete;

  // Reads the file again if it has changed since the last call. If it cannot be used, the quotas
  // stay as they were.
  void Refresh();
  // Reads the file again, whether it has changed or not, and calls on_change. The error says why it
  // cannot be used; the quotas then stay as they were. OK without a file.
  absl::Status Reload();

  // Reads no file, so it may be called with any lock held. An empty principal stands for everybody,
  // on a server that does not authenticate its callers.
  wan::v1::Quota Of(std::string_view principal) const;

 private:
  const std::string path_;  // empty: none
  Listener listener_;
  mutable absl::Mutex mutex_;
  FileStamp stamp_ ABSL_GUARDED_BY(mutex_);
  QuotaTable table_ ABSL_GUARDED_BY(mutex_);

  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Quotas(std::string path, Listener listener)
      : path_(std::move(path)), listener_(std::move(listener)) {}
};

}  // namespace wan::server
