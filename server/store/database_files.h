// Checks the files of an open database without SQLite: whether they are still in place, and whether
// writes are on the disk.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/durable_file.h"

namespace wan::server {

// Remembers which file was opened. If its folder is removed, or its disk unmounted, SQLite would go
// on writing a file that no later start finds. Any thread may call Check.
class FilePlace {
 public:
  // A missing file stands for a database in memory.
  explicit FilePlace(const std::string& file);

  // UNAVAILABLE (STORAGE_UNAVAILABLE), naming `where`, if the path now names another file or none.
  absl::Status Check(const std::string& where) const;

 private:
  const std::string file_;
  bool is_file_ = false;
  struct stat opened_ = {};
};

// Keeps other stores of this process away from a database. SQLite's lock on the file keeps away
// other processes; within one it admits several connections.
class SoleUse {
 public:
  // UNAVAILABLE, naming `where`, if the file is in use. A missing file (a database in memory) never
  // is.
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

// Returns the name under which SQLite opens a file that nobody writes, without a log of its own.
std::string ImmutableUri(const std::string& file);

// Syncs the write-ahead log beside a database. A descriptor of its own does no harm there: SQLite's
// locks, which would end when it is closed, are on the database's file. One call at a time.
class LogFile {
 public:
  // `where` names the database in messages.
  LogFile(const std::string& database, const std::string& where)
      : path_(database + "-wal"), where_(where) {}

  // Returns once all earlier writes are on the disk. UNAVAILABLE (STORAGE_UNAVAILABLE) if that is
  // uncertain.
  absl::Status Sync();

 private:
  const std::string path_;
  const std::string where_;
  // SQLite makes the file at the first write, and keeps it until the database is closed.
  std::unique_ptr<const Descriptor> file_;
};

}  // namespace wan::server
