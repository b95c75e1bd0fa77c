// SHA-256 of the files that models are read from: each is computed once, beside other work, and
// remembered across restarts.
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

// Most digests that are remembered; the least recently wanted are forgotten first. The largest
// model has about fifty files.
inline constexpr size_t kMaxFileDigests = 10'000;

// Thread-safe. A thread of its own reads the files, with the system's lowest priority for CPU and
// disk, and leaves the page cache as it found it. It ends within milliseconds of Stop; the file
// that it was reading is read again after the next start.
//
//   FILE   a line with the SHA-256 of what follows, then one line "KEY SHA256" for each digest
class FileDigests {
 public:
  // `file` keeps the digests; its folder need not exist yet. `on_problem` is called for files that
  // have changed since their model was loaded (they get no digest) and for digests that cannot be
  // stored; on the object's thread, with no lock held.
  FileDigests(std::filesystem::path file, std::function<void(const absl::Status&)> on_problem);
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;
  // Stops and waits for the thread.
  ~FileDigests();

  // The key of a digest, for one state of one file: lower-case hex.
  static std::string KeyOf(const ModelFile& file);

  // Computes the digests that are not known yet. Returns at once.
  void Want(const std::vector<ModelFile>& files);

  // Returns the digest in lower-case hex; nullopt while unknown.
  std::optional<std::string> Find(std::string_view key) const;

  // Between Pause and Resume, which may nest, no file is read: a model that is being loaded has the
  // disk for itself. Pause does not wait for the piece that is being read.
  void Pause();
  void Resume();

  // Waits until nothing is left to do, or until the object is paused or stopped.
  void AwaitIdle() const;

  // Ends the work. Does not wait. Idempotent.
  void Stop();

 private:
  void Loop();
  // Reads the digests of earlier processes, once. The data folder may appear after the server's
  // start.
  void ReadKept();
  // Writes all digests to the file.
  absl::Status Keep() const;
  // Reads one file. CANCELLED after Stop; FAILED_PRECONDITION if it is not the version any more.
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
