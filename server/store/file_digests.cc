#include "server/store/file_digests.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

// The number of bytes to read at a time; a slow core hashes this many bytes in a few milliseconds.
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kHexBytes = 64;

// Gives the calling thread the lowest priority for CPU and disk; ignores a refusal of the system.
void TakeLowestPriority() {
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_IDLE, &none);
  // IOPRIO_WHO_PROCESS of the system call ioprio_set; process 0 is the calling thread.
  constexpr int kOfThread = 1;
  constexpr int kIdle = 3 << 13;  // IOPRIO_CLASS_IDLE of ioprio_set
  ::syscall(SYS_ioprio_set, kOfThread, 0, kIdle);
}

// Reads at most `size` bytes at `offset`; returns how many were read, 0 at the end, or -1 with
// errno. Leaves the page cache as it was: drops bytes that were not cached before.
ssize_t ReadPiece(int descriptor, char* bytes, size_t size, off_t offset) {
  const iovec piece{bytes, size};
  const ssize_t cached = ::preadv2(descriptor, &piece, 1, offset, RWF_NOWAIT);
  if (cached > 0) return cached;
  const ssize_t read = ::pread(descriptor, bytes, size, offset);
  if (read > 0) ::posix_fadvise(descriptor, offset, read, POSIX_FADV_DONTNEED);
  return read;
}

bool IsDigest(std::string_view text) {
  return text.size() == kHexBytes && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c);
         });
}

absl::Status ChangedError(const ModelFile& file) {
  return absl::FailedPreconditionError(absl::StrCat(
      file.path,
      " has changed since its model was loaded, so receipts have no digest of it; load "
      "the model again to use the file as it is now"));
}

// Hashes one file. Fails with CANCELLED once `go_on`, which is called before each piece, returns
// false; with FAILED_PRECONDITION if the file is no longer in the given version.
absl::StatusOr<std::string> Compute(const ModelFile& file, const std::function<bool()>& go_on) {
  const Descriptor descriptor(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) {
    if (errno == ENOENT) return ChangedError(file);
    return ErrnoError(absl::StrCat("opening ", file.path), errno);
  }
  absl::StatusOr<FileVersion> version = FileVersion::Of(descriptor.get());
  if (!version.ok()) return version.status();
  if (*version != file.version) return ChangedError(file);
  // Disable read-ahead; otherwise ReadPiece would treat bytes that were read ahead like bytes that
  // had been cached before.
  ::posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_RANDOM);
  Sha256 hash;
  std::vector<char> piece(kPieceBytes);
  for (off_t offset = 0;;) {
    if (!go_on()) return absl::CancelledError(absl::StrCat("reading ", file.path));
    const ssize_t read = ReadPiece(descriptor.get(), piece.data(), piece.size(), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return ErrnoError(absl::StrCat("reading ", file.path), errno);
    if (read == 0) break;
    hash.Update({piece.data(), static_cast<size_t>(read)});
    offset += read;
  }
  // The file may have changed while it was read.
  version = FileVersion::Of(descriptor.get());
  if (!version.ok()) return version.status();
  if (*version != file.version) return ChangedError(file);
  return hash.FinishHex();
}

}  // namespace

FileDigests::FileDigests(std::filesystem::path file,
                         std::function<void(const absl::Status&)> on_problem,
                         std::function<void()> on_known)
    : file_(std::move(file)), on_problem_(std::move(on_problem)), on_known_(std::move(on_known)) {
  ReadKept();
  thread_ = std::thread([this] { Loop(); });
}

void FileDigests::Join() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

std::string FileDigests::KeyOf(const ModelFile& file) {
  return Sha256Hex(absl::StrCat(file.version.size_bytes, " ", file.version.modified_nanos, " ",
                                file.version.inode, " ", file.path));
}

void FileDigests::Want(const std::vector<ModelFile>& files) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_) waiting_.insert(waiting_.end(), files.begin(), files.end());
}

std::optional<std::string> FileDigests::Find(std::string_view key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  return found->second.digest;
}

absl::StatusOr<std::string> FileDigests::Learn(const ModelFile& file, const std::stop_token& stop) {
  const std::string key = KeyOf(file);
  if (std::optional<std::string> known = Find(key); known.has_value()) return *std::move(known);
  absl::StatusOr<std::string> digest = Compute(file, [&] {
    absl::MutexLock lock(&mutex_);
    return !stopped_ && !stop.stop_requested();
  });
  // A digest that cannot be stored is computed again after the next start. The object's thread
  // reports that.
  if (digest.ok()) Keep(key, *digest).IgnoreError();
  return digest;
}

void FileDigests::Pause() {
  absl::MutexLock lock(&mutex_);
  ++pauses_;
}

void FileDigests::Resume() {
  absl::MutexLock lock(&mutex_);
  --pauses_;
}

void FileDigests::AwaitIdle() const {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || pauses_ > 0 || (waiting_.empty() && !reading_);
  };
  mutex_.Await(absl::Condition(&idle));
}

void FileDigests::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool FileDigests::GoOn() {
  absl::MutexLock lock(&mutex_);
  const auto free = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_ || pauses_ == 0; };
  mutex_.Await(absl::Condition(&free));
  return !stopped_;
}

void FileDigests::Loop() {
  TakeLowestPriority();
  // Whether the last write succeeded, so that repeated failures are reported once.
  bool kept = true;
  for (;;) {
    ModelFile file;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopped_ || (!waiting_.empty() && pauses_ == 0);
      };
      mutex_.Await(absl::Condition(&wake));
      if (stopped_) return;
      file = std::move(waiting_.front());
      waiting_.pop_front();
      reading_ = true;
    }
    ReadKept();
    const std::string key = KeyOf(file);
    absl::Status problem;
    if (const std::optional<std::string> known = Find(key); known.has_value()) {
      absl::MutexLock lock(&mutex_);
      Add(key, *known);
    } else {
      const absl::StatusOr<std::string> digest = Compute(file, [this] { return GoOn(); });
      if (absl::IsCancelled(digest.status())) return;
      problem = digest.status();
      if (digest.ok()) {
        const absl::Status written = Keep(key, *digest);
        if (!written.ok() && kept) problem = written;
        kept = written.ok();
      }
    }
    if (!problem.ok()) on_problem_(problem);
    if (on_known_) on_known_();
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
}

void FileDigests::Add(const std::string& key, const std::string& digest) {
  Known& known = known_[key];
  by_want_.erase(known.wanted);
  known = {digest, ++last_want_};
  by_want_.emplace(known.wanted, key);
  if (known_.size() <= kMaxFileDigests) return;
  known_.erase(by_want_.begin()->second);
  by_want_.erase(by_want_.begin());
}

void FileDigests::ReadKept() {
  if (read_kept_) return;
  std::ifstream stream(file_, std::ios::binary);
  read_kept_ = stream.is_open();
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  // Ignore a missing or damaged file, because the object computes lost digests again.
  if (text.size() <= kHexBytes || text[kHexBytes] != '\n') return;
  const std::string_view lines = std::string_view(text).substr(kHexBytes + 1);
  if (Sha256Hex(lines) != std::string_view(text).substr(0, kHexBytes)) return;
  absl::MutexLock lock(&mutex_);
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (IsDigest(pair.first) && IsDigest(pair.second)) Add(pair.first, pair.second);
  }
}

absl::Status FileDigests::Keep(const std::string& key, const std::string& digest) {
  absl::MutexLock writing(&writing_);
  std::string lines;
  {
    absl::MutexLock lock(&mutex_);
    Add(key, digest);
    for (const auto& [want, kept] : by_want_) {
      absl::StrAppend(&lines, kept, " ", known_.find(kept)->second.digest, "\n");
    }
  }
  return ReplaceFile(file_, Sha256Hex(lines) + "\n", lines);
}

}  // namespace wan::server
