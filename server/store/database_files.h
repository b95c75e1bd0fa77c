// Checks without SQLite whether the files of an open database are still in their places, and
// whether writes are on the disk.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/durable_file.h"

namespace wan::server {

// Remembers which file was opened, because SQLite keeps writing to the opened file even if its
// folder was removed or its disk unmounted. Any thread may call Check.
class FilePlace {
 public:
  // If `file` does not exist (a database in memory), Check always succeeds.
  explicit FilePlace(const std::string& file);

  // Fails with UNAVAILABLE (STORAGE_UNAVAILABLE), naming `where`, if the path now leads to another
  // file or to none.
  absl::Status Check(const std::string& where) const;

 private:
  const std::string file_;
  bool is_file_ = false;
  struct stat opened_ = {};
};

// Prevents this process from opening a second store on the same database. The lock of SQLite
// excludes only other processes.
class SoleUse {
 public:
  // Fails with UNAVAILABLE, naming `where`, if the file is in use. A missing file (a database in
  // memory) is never in use.
  static absl::StatusOr<std::unique_ptr<const SoleUse>> Of(const std::string& file,
                                                           const std::string& where);
  SoleUse(const SoleUse&) = delete;
  SoleUse& operator=(const SoleUse&) = delete;
  ~SoleUse();

 private:
  SoleUse() = default;

  bool is_file_ = false;
  struct stat file_ = {};
};

// Returns the URI with which SQLite opens a file that nobody writes; SQLite then creates no
// write-ahead log.
std::string ImmutableUri(const std::string& file);

// Syncs the write-ahead log of a database over a descriptor of its own. (Closing this descriptor is
// harmless: it drops the process's locks on the log file, and SQLite's locks are on the database
// file.) Only one thread at a time may call Sync.
class LogFile {
 public:
  // `where` names the database in messages.
  LogFile(const std::string& database, const std::string& where)
      : path_(database + "-wal"), where_(where) {}

  // Returns once all earlier writes are on the disk. Fails with UNAVAILABLE (STORAGE_UNAVAILABLE)
  // if it is uncertain whether the writes are on the disk.
  absl::Status Sync();

 private:
  const std::string path_;
  const std::string where_;
  // The first call of Sync opens the log file. SQLite creates the file at the first write and keeps
  // it until the database is closed.
  std::unique_ptr<const Descriptor> file_;
};

}  // namespace wan::server
