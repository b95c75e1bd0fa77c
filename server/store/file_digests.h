// Computes the SHA-256 of the files that models are read from, each once, in the background, and
// remembers it across restarts.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/model_file.h"

namespace wan::server {

// Most remembered digests; the least recently wanted are forgotten. The largest model has about
// fifty files.
inline constexpr size_t kMaxFileDigests = 10'000;

// Thread-safe. The object's thread reads the files with the system's lowest priority for CPU and
// disk, and leaves the page cache unchanged. It ends within milliseconds after Stop; a file that
// was not finished is read again after the next start.
//
//   FILE   a line with the SHA-256 of what follows, then one line "KEY SHA256" for each digest
class FileDigests {
 public:
  // `file` stores the digests; its folder need not exist yet. `on_problem` is called on the
  // object's thread, with no lock held, for files that have changed since their model was loaded
  // (they get no digest), and if digests cannot be stored.
  FileDigests(std::filesystem::path file, std::function<void(const absl::Status&)> on_problem);
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;
  // Calls Stop and waits for the thread.
  ~FileDigests();

  // Returns the key of a digest, in lower-case hex; it identifies one version of one file.
  static std::string KeyOf(const ModelFile& file);

  // Queues the files whose digests are unknown. Returns at once.
  void Want(const std::vector<ModelFile>& files);

  // Returns the digest in lower-case hex; nullopt while unknown.
  std::optional<std::string> Find(std::string_view key) const;

  // No file is read between Pause and Resume, which may nest, so that a load has the disk for
  // itself. Pause does not wait for a read that has begun.
  void Pause();
  void Resume();

  // Waits until all queued files are done, or until the object is paused or stopped.
  void AwaitIdle() const;

  // Makes the thread end. Does not wait. Idempotent.
  void Stop();

 private:
  void Loop();
  // Reads the digests of earlier processes if that has not succeeded yet; the data folder may
  // appear after the server's start.
  void ReadKept();
  // Writes all digests to the file.
  absl::Status Keep() const;
  // Hashes one file. CANCELLED after Stop; FAILED_PRECONDITION if the file is no longer the given
  // version.
  absl::StatusOr<std::string> Compute(const ModelFile& file);
  // Waits while the object is paused. Returns false after Stop.
  bool GoOn();
  void Add(const std::string& key, const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Known {
    std::string digest;
    uint64_t wanted = 0;  // a counter: greater means wanted later
  };

  const std::filesystem::path file_;
  bool read_kept_ = false;  // used by the constructor, then by the thread alone
  const std::function<void(const absl::Status&)> on_problem_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Known, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> by_want_ ABSL_GUARDED_BY(mutex_);  // the keys of `known_`
  uint64_t last_want_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<ModelFile> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  int pauses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
