// Keeps the statements of a connection prepared, because preparing one takes about as long as
// running it.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <unordered_map>

namespace wan::server {

// Use a Statements object like the connection, which must outlive the object. Not thread-safe.
class Statements {
 public:
  explicit Statements(SQLite::Database& db) : db_(db) {}
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): most work on the connection prepares nothing
  operator SQLite::Database&() const { return db_; }

  // A prepared statement in use, at first without bindings. The destructor ends the statement's
  // run, so that no snapshot stays open.
  class Use {
   public:
    explicit Use(SQLite::Statement& statement);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    SQLite::Statement* operator->() const { return &statement_; }
    SQLite::Statement& operator*() const { return statement_; }

   private:
    SQLite::Statement& statement_;
  };

  // Returns a use of the statement; prepares the statement at the first call. A statement may have
  // only one Use at a time.
  Use Get(const char* sql);

 private:
  SQLite::Database& db_;
  std::unordered_map<std::string, SQLite::Statement> prepared_;
};

}  // namespace wan::server
