// The schema of the SQLite store, opening its file, and translating SQLite's errors.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wan::server {

// Converts an exception of SQLite to a status of JobStore. `where` names the file in the message.
// The reason is STORAGE_UNAVAILABLE if the disk refuses reads or writes.
absl::Status SqliteStatus(const SQLite::Exception& error, const std::string& where);

// Opens a file for reading, with its write-ahead log if it has one, without a lock and without
// creating files. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenReadOnly(const std::filesystem::path& file);

// Opens or creates a file. No other process can use the file from its first use until all
// connections are closed. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenToWrite(const std::string& file);

// Opens another connection, for reading, which never waits for the writing one. Call it after
// PrepareDatabase. Throws SQLite::Exception.
std::unique_ptr<SQLite::Database> OpenBesideWriter(const std::string& file);

// Locks the file for this process, checks it, and migrates it to this server's schema. Returns
// an error or throws SQLite::Exception. If the disk refuses writes but the schema needs no
// migration, it returns OK, because the file can be read.
absl::Status PrepareDatabase(SQLite::Database& database, const std::string& where);

// The same check for a connection that can only read. UNAVAILABLE (STORAGE_UNAVAILABLE) if the
// schema needs a migration.
absl::Status PrepareForReading(SQLite::Database& database, const std::string& where);

// Gives some free pages of the file back to the file system, and returns whether there are more. A
// database that was created before schema version 5 never shrinks (it would need VACUUM, which
// rewrites the whole file); it only reuses its free pages.
bool VacuumPiece(SQLite::Database& database);

// Writes to the file without changing anything. Throws SQLite::Exception if that fails.
void WriteNothing(SQLite::Database& database);

}  // namespace wan::server
