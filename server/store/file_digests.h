// Computes in the background the SHA-256 of the files that models are read from, each file once,
// and remembers the digests across restarts.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
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

// Maximum number of digests that FileDigests keeps; it removes the digests that were wanted least
// recently. The largest model has about fifty files.
inline constexpr size_t kMaxFileDigests = 10'000;

// Thread-safe. A thread of the object reads the files with the system's lowest priority for CPU and
// disk, and leaves the page cache unchanged. The thread ends within milliseconds after Stop; a file
// that it has not finished is read again after the next start.
//
//   FILE   a line with the SHA-256 of what follows, then one line "KEY SHA256" for each digest
class FileDigests {
 public:
  // `file` is the path of the file with the digests; the file's folder need not exist yet. Calls
  // `on_problem` on the object's thread, with no lock held, if digests cannot be stored, and for
  // each file that has changed since its model was loaded (the file gets no digest). Calls
  // `on_known`, if it is set, on the same thread after each file that is done.
  FileDigests(std::filesystem::path file, std::function<void(const absl::Status&)> on_problem,
              std::function<void()> on_known = nullptr);
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;
  ~FileDigests() { Join(); }

  // Returns the key of a file's digest, in lower-case hex; it identifies one version of one file.
  static std::string KeyOf(const ModelFile& file);

  // Queues the files whose digests are unknown. Returns without waiting for the reads.
  void Want(const std::vector<ModelFile>& files);

  // Returns a digest in lower-case hex; nullopt while it is unknown.
  std::optional<std::string> Find(std::string_view key) const;

  // Returns the file's digest. If it is unknown, reads the file on the calling thread with the
  // thread's own priority, also while the object is paused: up to a second for each GB. Fails with
  // CANCELLED after Stop and once `stop` is requested; FAILED_PRECONDITION if the file has changed
  // since its model was loaded; the system's error if it cannot be read.
  absl::StatusOr<std::string> Learn(const ModelFile& file, const std::stop_token& stop);

  // Between Pause and Resume, which may nest, the object reads no file, so that a load has the disk
  // for itself. Pause does not wait for a read that has begun.
  void Pause();
  void Resume();

  // Waits until all queued files are done, or until the object is paused or stopped.
  void AwaitIdle() const;

  // Ends the thread. Does not wait for the thread. Later calls do nothing.
  void Stop();
  // Calls Stop and waits for the thread: afterwards nothing is called back.
  void Join();

 private:
  void Loop();
  // Reads the digests of earlier processes, unless an earlier call has read them; the data folder
  // may appear only after the server's start.
  void ReadKept();
  // Adds a digest and writes all of them to the file.
  absl::Status Keep(const std::string& key, const std::string& digest);
  // Waits while the object is paused. Returns false after Stop.
  bool GoOn();
  void Add(const std::string& key, const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Known {
    std::string digest;
    uint64_t wanted = 0;  // the greater, the later the file was wanted
  };

  const std::filesystem::path file_;
  bool read_kept_ = false;  // used by the constructor, and then only by the thread
  const std::function<void(const absl::Status&)> on_problem_;
  const std::function<void()> on_known_;
  absl::Mutex writing_;  // held while the file is written
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(writing_);
  std::map<std::string, Known, std::less<>> known_ ABSL_GUARDED_BY(mutex_);
  // The keys of `known_`, ordered by Known::wanted.
  std::map<uint64_t, std::string> by_want_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_want_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<ModelFile> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  int pauses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
