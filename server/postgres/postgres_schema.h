// Defines the schema of the PostgreSQL store, and lets one server at a time use it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/postgres/connection.h"

namespace wan::server {

// Makes sure that one server at a time writes the database. The lock belongs to the session of the
// connection that took it: PostgreSQL gives it back when that session ends, so no write of an older
// session can follow.
class SoleServer {
 public:
  // Takes the lock, and waits some seconds for a server that is just ending. A session of this
  // object that PostgreSQL still keeps, because nobody told it that the connection is lost, is
  // ended first.
  //
  // Fails with UNAVAILABLE and says who has the lock; FAILED_PRECONDITION (STORAGE_UNAVAILABLE) if
  // another server has used the database since the first call, because this one no longer knows
  // what its jobs are.
  absl::Status Take(Connection& connection);

  // Notes this server in the database. Call it once, after Take and MigrateSchema.
  absl::Status Begin(Connection& connection);

 private:
  int64_t backend_ = 0;  // process of the session that has or had the lock; 0: none
  std::string since_;    // when that process began
  std::string life_;     // random, names this object in the database; empty before Begin
};

// Creates the schema, or takes it to the version of this server. Fails with FAILED_PRECONDITION if
// a newer server has made changes that this one does not understand, or if the database is too old
// or has another encoding than UTF8. Call it with the lock of SoleServer.
absl::Status MigrateSchema(Connection& connection);

// Returns random bytes in hexadecimal form that name the database for its life.
absl::StatusOr<std::string> DatabaseId(Connection& connection);

}  // namespace wan::server
