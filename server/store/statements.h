// Keeps the statements of a connection prepared, because preparing one takes about as long as
// running it.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <unordered_map>

namespace wan::server {

// Used like the connection itself, which must outlive it. Not thread-safe.
class Statements {
 public:
  explicit Statements(SQLite::Database& db) : db_(db) {}
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): most work on the connection prepares nothing
  operator SQLite::Database&() const { return db_; }

  // A prepared statement in use, at first without bindings. Its destructor ends the run, so that no
  // snapshot stays open.
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

  // Prepares the statement when it is asked for first. A statement may be in use once at a time.
  Use Get(const char* sql);

 private:
  SQLite::Database& db_;
  std::unordered_map<std::string, SQLite::Statement> prepared_;
};

}  // namespace wan::server
