// Holds the server's certificate, its key and the authorities of client certificates, and reads
// their files again when they change.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/auth/file_stamp.h"

namespace wan::server {

// Paths of the PEM files.
struct TlsPaths {
  std::string certificate;  // the server's certificate, followed by its chain
  std::string key;          // the certificate's key, without a passphrase
  std::string client_ca;    // authorities of client certificates; empty: TLS asks for none
};

// The contents of the files; the key belongs to the certificate.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  // Time at which the certificate expires.
  absl::Time expiry;
};

// Reads the files and checks that a server can use them at `now`. An error message begins with the
// names of the setting and the file. Errors: NOT_FOUND or another code for unreadable files;
// INVALID_ARGUMENT for files that are not PEM or a key that does not fit the certificate;
// FAILED_PRECONDITION for a certificate that has expired or is not valid yet.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths, absl::Time now);

// Thread-safe.
class TlsFiles {
 public:
  // Reads the files for the first time. Returns ReadTlsFiles' errors. The object calls `on_problem`
  // with the error when changed files are invalid, and `on_change` when new ones are in use; both
  // with no lock held. The clock must outlive the object.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(
      TlsPaths paths, const Clock& clock, std::function<void(const absl::Status&)> on_problem,
      std::function<void(const TlsMaterial&)> on_change);

  // Returns the certificate, key and authorities for new connections. Each call checks whether a
  // file has changed, and if so reads all files. If the new files do not fit each other, the old
  // material stays in use.
  std::shared_ptr<const TlsMaterial> Current();

  // Reads the files again even if they have not changed, and calls `on_change`. Returns an error if
  // the files are invalid; the old material then stays in use.
  absl::Status Reload();

 private:
  struct Stamps {
    FileStamp certificate;
    FileStamp key;
    FileStamp client_ca;
    friend bool operator==(const Stamps&, const Stamps&) = default;
  };

  TlsFiles(TlsPaths paths, const Clock& clock, std::function<void(const absl::Status&)> on_problem,
           std::function<void(const TlsMaterial&)> on_change);
  Stamps StampsNow() const;
  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsPaths paths_;
  const Clock& clock_;
  const std::function<void(const absl::Status&)> on_problem_;
  const std::function<void(const TlsMaterial&)> on_change_;
  absl::Mutex mutex_;
  Stamps stamps_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
