// The schema of the SQLite store, and what SQLite's errors mean to it.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

#include "absl/status/status.h"

namespace wan::server {

// Turns what SQLite threw into a status of JobStore; `where` names the file. A disk that refuses
// reads or writes has the reason STORAGE_UNAVAILABLE.
absl::Status SqliteStatus(const SQLite::Exception& error, const std::string& where);

// Takes the file for this connection alone, checks it, and brings it to this server's version. What
// is wrong is returned or thrown (SQLite::Exception). A disk that refuses writes is no error if the
// file has this version already: what is there can be read.
absl::Status PrepareDatabase(SQLite::Database& database, const std::string& where);

// Like PrepareDatabase, for a connection that can only read.
absl::Status PrepareForReading(SQLite::Database& database, const std::string& where);

// Proves that the file takes writes, by one that changes nothing. Throws.
void WriteNothing(SQLite::Database& database);

}  // namespace wan::server
