#include "server/store/job_objects.h"

#include <cerrno>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/objects/back_off.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

constexpr char kArtifacts[] = "artifacts/";
constexpr char kSavepoints[] = "savepoints/";
constexpr size_t kPieceBytes = size_t{1} << 20;
// A savepoint of the largest model has less than 100 MiB.
constexpr uint64_t kMostSavepointBytes = uint64_t{1} << 30;
constexpr absl::Duration kSavepointPatience = absl::Seconds(10);
// How long a download waits for the store.
constexpr absl::Duration kReadPatience = absl::Seconds(10);
// How long a listing at the start waits for the store, and the end of the server for the listing.
constexpr absl::Duration kListPatience = absl::Seconds(5);
constexpr absl::Duration kReadAgain = absl::Seconds(5);
// How long an upload repeats its requests before the problem is told and it begins anew.
constexpr absl::Duration kUploadPatience = absl::Seconds(10);
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kMostPause = absl::Seconds(30);

std::string IdOf(std::string_view job) { return std::string(JobIdOf(job)); }

std::string PrefixOf(std::string_view job) { return absl::StrCat(kArtifacts, IdOf(job), "/"); }

std::string PrefixOf(std::string_view job, int attempt) {
  return absl::StrCat(PrefixOf(job), attempt, "/");
}

std::string KeyOf(const JobObjects::File& file) {
  return PrefixOf(file.job, file.attempt) + file.name;
}

// Whether an error of PutFile cannot come from the file. Such errors last longest, and
// CheckReadable would read the whole file after each try.
bool IsOfStore(const absl::Status& put) {
  return absl::IsUnavailable(put) || absl::IsUnauthenticated(put);
}

// Returns why the file cannot be read.
absl::Status CheckReadable(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPieceBytes, '\0');
  while (file) file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
  if (file.eof()) return absl::OkStatus();
  return ErrnoError(absl::StrCat("reading ", path.string()), errno == 0 ? EIO : errno);
}

}  // namespace

JobObjects::JobObjects(ObjectStore& store, Clock& clock, OnProblem on_problem)
    : store_(store),
      clock_(clock),
      on_problem_(std::move(on_problem)),
      remover_([this](const std::stop_token& stop) { Loop(stop); }) {}

JobObjects::~JobObjects() {
  remover_.request_stop();
  absl::MutexLock lock(&mutex_);
  end_ = true;
}

absl::Status JobObjects::Persist(const std::string& waits,
                                 const std::function<absl::Status()>& attempt,
                                 const std::stop_token& stop) {
  BackOff back_off(kFirstPause, kMostPause);
  absl::Status told;
  for (;;) {
    const absl::Status status = attempt();
    if (status.ok()) return absl::OkStatus();
    if (status != told && !stop.stop_requested()) {
      told = status;
      on_problem_(absl::Status(status.code(), absl::StrCat(waits, ": ", status.message())));
    }
    if (!Pause(clock_, back_off.Next(), stop)) {
      return absl::CancelledError("stopped while the object store was away");
    }
  }
}

absl::Status JobObjects::Upload(const std::string& key, const std::filesystem::path& file,
                                std::string_view job, const std::stop_token& stop) {
  absl::Status result;
  const auto attempt = [&]() -> absl::Status {
    absl::Status put = store_.PutFile(key, file, {kUploadPatience, stop});
    if (put.ok() || stop.stop_requested() || IsOfStore(put)) return put;
    // Everything but the file and its name is the store's matter, which may pass.
    result = CheckReadable(file);
    if (!result.ok()) return absl::OkStatus();
    if (!absl::IsInvalidArgument(put)) return put;
    on_problem_(absl::Status(
        put.code(), absl::StrCat(std::string(job), " cannot be published: ", put.message())));
    result = absl::InvalidArgumentError(absl::StrCat(
        "the server's object store cannot have a file with the name ", file.filename().string()));
    return absl::OkStatus();
  };
  const absl::Status ended =
      Persist(absl::StrCat(std::string(job),
                           " waits to be published, because the object store does not take its "
                           "files"),
              attempt, stop);
  return ended.ok() ? result : ended;
}

absl::Status JobObjects::Publish(std::string_view job, int attempt,
                                 std::span<const std::filesystem::path> files,
                                 const std::stop_token& stop) {
  for (const std::filesystem::path& file : files) {
    const std::string key = PrefixOf(job, attempt) + file.filename().string();
    if (absl::Status status = Upload(key, file, job, stop); !status.ok()) {
      RemoveAttempt(job, attempt);
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status JobObjects::ForCallers(const absl::Status& status, const File& file) const {
  if (absl::IsNotFound(status)) return status;
  if (!store_.reads().stop_requested()) {
    on_problem_(absl::Status(status.code(), absl::StrCat(file.job, ": ", file.name,
                                                         " cannot be read: ", status.message())));
  }
  return WithRetryDelay(
      absl::UnavailableError("the file cannot be read from the server's object store now; try "
                             "again later"),
      kReadAgain);
}

absl::StatusOr<uint64_t> JobObjects::SizeOf(const File& file) {
  const absl::StatusOr<ObjectFacts> facts =
      store_.Stat(KeyOf(file), {kReadPatience, store_.reads()});
  if (!facts.ok()) return ForCallers(facts.status(), file);
  return facts->size;
}

absl::StatusOr<std::string> JobObjects::ReadAt(const File& file, uint64_t offset, uint64_t bytes) {
  std::string read;
  const absl::Status status = store_.Get(KeyOf(file), {offset, bytes},
                                         [&read](std::string_view piece) {
                                           read.append(piece);
                                           return absl::OkStatus();
                                         },
                                         {kReadPatience, store_.reads()});
  if (!status.ok()) return ForCallers(status, file);
  return read;
}

absl::Status JobObjects::KeepSavepoint(std::string_view job, const std::filesystem::path& file,
                                       const std::stop_token& stop) {
  return store_.PutFile(kSavepoints + IdOf(job), file, {kSavepointPatience, stop});
}

absl::StatusOr<std::string> JobObjects::ReadSavepoint(std::string_view job,
                                                      const std::stop_token& stop) {
  absl::StatusOr<std::string> read;
  const auto attempt = [&]() -> absl::Status {
    read = store_.Read(kSavepoints + IdOf(job), kMostSavepointBytes, {kSavepointPatience, stop});
    if (absl::IsNotFound(read.status())) return absl::OkStatus();
    if (!absl::IsOutOfRange(read.status())) return read.status();
    // No savepoint is so large, so this object is none.
    on_problem_(read.status());
    read = absl::NotFoundError("the object is no savepoint");
    return absl::OkStatus();
  };
  const absl::Status ended =
      Persist(absl::StrCat(std::string(job),
                           " waits to go on, because the object store does not give its savepoint"),
              attempt, stop);
  if (!ended.ok()) return ended;
  return read;
}

void JobObjects::RemoveJob(std::string_view job) { Remove({PrefixOf(job), ""}); }

void JobObjects::RemoveAttempt(std::string_view job, int attempt) {
  Remove({PrefixOf(job, attempt), ""});
}

void JobObjects::RemoveFile(std::string_view job, std::string_view file) {
  Remove({PrefixOf(job), "/" + std::string(file)});
}

void JobObjects::RemoveSavepoint(std::string_view job) {
  Remove({kSavepoints + IdOf(job), std::string(JobIdOf(job))});
}

void JobObjects::Remove(Removal removal) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.insert(removal).second) queue_.push_back(std::move(removal));
}

void JobObjects::AwaitRemovals() {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_.empty(); };
  mutex_.Await(absl::Condition(&none));
}

absl::Status JobObjects::Carry(const Removal& removal, const std::stop_token& stop) {
  const ObjectCall call{.stop = stop};
  if (removal.prefix == kSavepoints + removal.name) return store_.Remove(removal.prefix, call);
  if (removal.name.empty()) return store_.RemovePrefix(removal.prefix, call);
  std::vector<std::string> keys;
  absl::Status status = store_.List(
      removal.prefix,
      [&](const ObjectFacts& object) {
        if (object.key.ends_with(removal.name)) keys.push_back(object.key);
        return true;
      },
      call);
  for (size_t i = 0; i < keys.size() && status.ok(); ++i) status = store_.Remove(keys[i], call);
  return status;
}

void JobObjects::Loop(const std::stop_token& stop) {
  std::optional<BackOff> back_off;  // set while the store refuses removals
  for (;;) {
    Removal removal;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return end_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&wake));
      if (end_) return;
      removal = std::move(queue_.front());
      queue_.pop_front();
    }
    const absl::Status status = Carry(removal, stop);
    if (status.ok()) {
      back_off.reset();
      absl::MutexLock lock(&mutex_);
      waiting_.erase(removal);
      continue;
    }
    if (stop.stop_requested()) return;
    if (!back_off.has_value()) {
      back_off.emplace(kFirstPause, kMostPause);
      on_problem_(absl::Status(status.code(),
                               absl::StrCat("removed files stay in the object store until it takes "
                                            "removals: ",
                                            status.message())));
    }
    {
      absl::MutexLock lock(&mutex_);
      queue_.push_back(std::move(removal));
    }
    if (!Pause(clock_, back_off->Next(), stop)) return;
  }
}

absl::Status JobObjects::VisitFiles(const std::function<bool(const File& file)>& visit) {
  return store_.List(kArtifacts,
                     [&](const ObjectFacts& object) {
                       const std::vector<std::string> names = absl::StrSplit(object.key, '/');
                       int attempt = 0;
                       if (names.size() != 4 || !absl::SimpleAtoi(names[2], &attempt))
                         return true;  // not ours
                       return visit({"jobs/" + names[1], attempt, names[3]});
                     },
                     {kListPatience, {}});
}

absl::Status JobObjects::VisitSavepoints(const std::function<bool(const std::string& job)>& visit) {
  return store_.List(kSavepoints,
                     [&](const ObjectFacts& object) {
                       return visit("jobs/" + object.key.substr(sizeof(kSavepoints) - 1));
                     },
                     {kListPatience, {}});
}

}  // namespace wan::server
