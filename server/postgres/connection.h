// A connection to PostgreSQL: a thin layer over libpq.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace wan::server {

// Bytes of a column of the type bytea.
struct Bytes {
  std::string_view bytes;
};

// The value of a parameter: null, bigint, double precision, boolean, text or bytea. A text or bytes
// must live until the statement has run.
using PgValue = std::variant<std::monostate, int64_t, double, bool, std::string_view, Bytes>;

// The result of a statement, whose values were sent in binary form. A value of null, and one beyond
// the end, reads as 0 or as an empty text.
class Rows {
 public:
  Rows() = default;
  explicit Rows(PGresult* result) : result_(result) {}

  int size() const { return PQntuples(result_.get()); }
  bool empty() const { return size() == 0; }
  const PGresult* result() const { return result_.get(); }

  bool IsNull(int row, int column) const;
  // Reads a smallint, an integer or a bigint.
  int64_t Int(int row, int column) const;
  double Double(int row, int column) const;
  bool Bool(int row, int column) const;
  // Reads a text, or the bytes of a bytea.
  std::string Text(int row, int column) const;

 private:
  std::string_view Value(int row, int column) const;

  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// How long a statement may take. The server of the database ends a statement before that, so a
// longer silence means that it hangs, or that nothing reaches it.
inline constexpr absl::Duration kStatementPatience = absl::Seconds(30);

// Use an object on one thread at a time.
//
// Errors stick: after one has occurred, Run does nothing and returns no rows until TakeStatus has
// returned the error. So a caller runs several statements and asks for the error once. Results
// that were read meanwhile must be dropped then.
//
// Errors have the code UNAVAILABLE, RESOURCE_EXHAUSTED or PERMISSION_DENIED and the reason
// STORAGE_UNAVAILABLE if the database cannot be reached, is full or refuses writes; DATA_LOSS if it
// is damaged; INTERNAL otherwise. The message names the database, and the SQLSTATE if there is one;
// it contains no password and no value of a parameter.
class Connection {
 public:
  // Connects and sets the session up. `url` must pass CheckPostgresUrl. A statement that is not
  // answered within `patience` fails with UNAVAILABLE, and the connection counts as lost.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& url, absl::Duration patience = kStatementPatience);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Runs a statement. It is prepared at its first use, so its text must not contain values.
  Rows Run(const std::string& sql, std::initializer_list<PgValue> values = {});

  // Runs several statements without parameters and returns no rows.
  void RunScript(const std::string& sql);

  // Returns the first error since the last call, and forgets it.
  absl::Status TakeStatus();
  bool failed() const { return !status_.ok(); }

  // Whether the connection is lost for good. Open another one.
  bool lost() const { return lost_; }
  // Whether it is lost because the database did not answer in time.
  bool timed_out() const { return timed_out_; }

  absl::Duration patience() const { return patience_; }
  void set_patience(absl::Duration patience) { patience_ = patience; }

  // The process of the database that serves the connection.
  int64_t backend() const { return PQbackendPID(connection_); }
  // For example 150018.
  int version() const { return PQserverVersion(connection_); }
  // The SQLSTATE of the last error, "55P03"; empty if it had none.
  const std::string& sql_state() const { return sql_state_; }
  // Names the database in messages: "PostgreSQL database wan on db.example.com".
  const std::string& where() const { return where_; }

 private:
  Connection(PGconn* connection, std::string where, absl::Duration patience)
      : connection_(connection), where_(std::move(where)), patience_(patience) {}

  // Returns the name of the prepared statement; after an error it means nothing.
  std::string Prepared(const std::string& sql, std::initializer_list<PgValue> values);
  // Waits for the answer to a statement that was sent, and keeps its error if it is one. `sent` is
  // the result of libpq's function.
  Rows Answer(int sent);
  // Returns the last result of the statement; null if the database does not answer in time.
  Rows AwaitLast();
  // Waits until a result, or the end of the results, can be read without waiting.
  bool AwaitResult(std::chrono::steady_clock::time_point began);

  PGconn* const connection_;
  const std::string where_;
  absl::Duration patience_;
  std::map<std::string, std::string> prepared_;  // names by statement
  absl::Status status_;
  std::string sql_state_;
  bool lost_ = false;
  bool timed_out_ = false;
};

}  // namespace wan::server
