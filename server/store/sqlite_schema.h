// Defines the schema of the SQLite store, opens its file, and converts SQLite's errors.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wan::server {

// Converts an exception of SQLite to a status of JobStore. `where` names the file in the message.
// The status has the reason STORAGE_UNAVAILABLE if the disk refuses reads or writes.
absl::Status SqliteStatus(const SQLite::Exception& error, const std::string& where);

// Opens a file, with its write-ahead log if it has one, for reading only: takes no lock and creates
// no files. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenReadOnly(const std::filesystem::path& file);

// Opens the file, or creates it if it is missing. From the first use until all connections are
// closed, no other process can use the file. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenToWrite(const std::string& file);

// Opens another connection, for reading, which never waits for the writing connection. Call
// OpenBesideWriter after PrepareDatabase. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenBesideWriter(const std::string& file);

// Locks the file for this process, checks the file, and migrates it to this server's schema. If one
// of these fails, returns an error or throws SQLite::Exception. If the disk refuses writes but the
// schema needs no migration, returns OK, because the file can still be read.
absl::Status PrepareDatabase(SQLite::Database& database, const std::string& where);

// Makes the checks of PrepareDatabase for a connection that can only read. Fails with UNAVAILABLE
// (STORAGE_UNAVAILABLE) if the schema needs a migration.
absl::Status PrepareForReading(SQLite::Database& database, const std::string& where);

// Gives some free pages of the file back to the file system, and returns whether the file has more
// free pages. A database that was created before schema version 5 only reuses its free pages and
// never shrinks, because shrinking would need VACUUM, which rewrites the whole file.
bool VacuumPiece(SQLite::Database& database);

// Writes to the file without changing anything. Throws SQLite::Exception if the write fails.
void WriteNothing(SQLite::Database& database);

}  // namespace wan::server
