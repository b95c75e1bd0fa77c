#include "server/postgres/connection.h"

#include <endian.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// The type numbers of PostgreSQL's catalog.
constexpr Oid kAnyType = 0;
constexpr Oid kBoolean = 16;
constexpr Oid kBytea = 17;
constexpr Oid kBigint = 20;
constexpr Oid kText = 25;
constexpr Oid kDouble = 701;

// A wait for the socket ends after this time at the latest, because bytes that the TLS library has
// already read do not wake it.
constexpr absl::Duration kPollAtMost = absl::Milliseconds(200);

// What every session needs. A statement that hangs must not hold a thread forever; a session whose
// machine is gone must not hold the server's lock for hours. A commit that is not on the disk is no
// commit, whatever the database's default is. The orders of lists are those of
// indexes, and sorting the jobs of an owner costs more the more there are; the few rows that are
// sorted all the same (the files of a job) must not look so dear that they are compiled.
constexpr char kSetUp[] =
    "SET search_path = wanserve; SET jit = off; SET statement_timeout = '25s';"
    "SET idle_in_transaction_session_timeout = '120s'; SET default_transaction_isolation = "
    "'read committed'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;"
    "SET tcp_keepalives_count = 3; SET enable_sort = off; SET enable_incremental_sort = off;"
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'";

// The binary form of a parameter, which owns the bytes of numbers.
struct Parameter {
  Oid type = kAnyType;
  const char* data = nullptr;
  int size = 0;
  std::array<char, 8> number{};

  void Take(uint64_t bits) {
    const uint64_t ordered = htobe64(bits);
    std::memcpy(number.data(), &ordered, number.size());
    size = static_cast<int>(number.size());
  }
  // An empty text must not look like null.
  void Take(std::string_view bytes) {
    data = bytes.empty() ? "" : bytes.data();
    size = static_cast<int>(bytes.size());
  }
};

Parameter ToParameter(const PgValue& value) {
  Parameter made;
  if (const auto* const integer = std::get_if<int64_t>(&value)) {
    made.type = kBigint;
    made.Take(static_cast<uint64_t>(*integer));
  } else if (const auto* const real = std::get_if<double>(&value)) {
    made.type = kDouble;
    made.Take(std::bit_cast<uint64_t>(*real));
  } else if (const auto* const boolean = std::get_if<bool>(&value)) {
    made.type = kBoolean;
    made.Take(std::string_view(*boolean ? "\1" : "\0", 1));
  } else if (const auto* const text = std::get_if<std::string_view>(&value)) {
    made.type = kText;
    made.Take(*text);
  } else if (const auto* const bytes = std::get_if<Bytes>(&value)) {
    made.type = kBytea;
    made.Take(bytes->bytes);
  }
  return made;
}

std::string WhereOf(const PGconn* connection) {
  const auto part = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  return absl::StrCat("PostgreSQL database ", part(PQdb(connection)), " on ",
                      part(PQhost(connection)));
}

// Puts a message of libpq, which may have several lines, on one.
std::string OneLine(std::string message) {
  absl::RemoveExtraAsciiWhitespace(&message);
  for (char& c : message) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) c = ' ';
  }
  return message;
}

absl::Status Storage(absl::Status status) {
  return WithReason(std::move(status), kReasonStorageUnavailable);
}

// Whether the server is going away or has become a standby: another connection may reach one that
// takes writes.
bool EndsConnection(std::string_view state) {
  return state.starts_with("08") || state.starts_with("57P") || state == "25006";
}

absl::Status ErrorOf(const std::string& what, const std::string& state) {
  if (state.empty() || EndsConnection(state)) {
    return Storage(absl::UnavailableError(
        absl::StrCat(what, "; check that the database runs and can be reached")));
  }
  if (state == "53100") {
    return Storage(absl::ResourceExhaustedError(
        absl::StrCat(what, "; the database's disk is full: free some space")));
  }
  if (state == "42501") {
    return Storage(absl::PermissionDeniedError(
        absl::StrCat(what, "; the role of the URL must own the schema wanserve")));
  }
  // Too little memory or connections, a lock or statement that took too long, the input or output
  // of the database's disk.
  for (const char* const passing : {"53", "40", "55", "57", "58"}) {
    if (state.starts_with(passing)) return Storage(absl::UnavailableError(what));
  }
  if (state == "XX001" || state == "XX002") {  // damaged data, a damaged index
    return absl::DataLossError(absl::StrCat(what, "; restore a backup of the database"));
  }
  return absl::InternalError(what);
}

}  // namespace

std::string_view Rows::Value(int row, int column) const {
  if (IsNull(row, column)) return {};
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

bool Rows::IsNull(int row, int column) const {
  return row >= size() || PQgetisnull(result_.get(), row, column) != 0;
}

int64_t Rows::Int(int row, int column) const {
  const std::string_view bytes = Value(row, column);
  if (bytes.empty()) return 0;
  // The first byte has the sign.
  int64_t value = static_cast<signed char>(bytes.front()) < 0 ? -1 : 0;
  for (const char byte : bytes) {
    value = static_cast<int64_t>((static_cast<uint64_t>(value) << 8) |
                                 static_cast<unsigned char>(byte));
  }
  return value;
}

double Rows::Double(int row, int column) const { return std::bit_cast<double>(Int(row, column)); }

bool Rows::Bool(int row, int column) const { return Int(row, column) != 0; }

std::string Rows::Text(int row, int column) const { return std::string(Value(row, column)); }

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& url,
                                                             absl::Duration patience) {
  // Values of the URL replace those before it.
  const std::array<const char*, 11> keys = {"connect_timeout",           "keepalives_idle",
                                            "keepalives_interval",       "keepalives_count",
                                            "tcp_user_timeout",          "target_session_attrs",
                                            "fallback_application_name", "dbname",
                                            "client_encoding",           nullptr};
  const std::array<const char*, 11> values = {
      "5", "10", "5", "3", "20000", "read-write", "wanserve", url.c_str(), "UTF8", nullptr};
  PGconn* const made = PQconnectdbParams(keys.data(), values.data(), /*expand_dbname=*/1);
  if (made == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  std::unique_ptr<Connection> connection(new Connection(made, WhereOf(made), patience));
  if (PQstatus(made) != CONNECTION_OK || PQsetnonblocking(made, 1) != 0) {
    return Storage(absl::UnavailableError(
        absl::StrCat(connection->where(), ": ", OneLine(PQerrorMessage(made)))));
  }
  PQsetNoticeProcessor(
      made, [](void*, const char*) {}, nullptr);
  connection->RunScript(kSetUp);
  if (absl::Status status = connection->TakeStatus(); !status.ok()) return status;
  return connection;
}

Connection::~Connection() { PQfinish(connection_); }

absl::Status Connection::TakeStatus() { return std::exchange(status_, absl::OkStatus()); }

Rows Connection::Run(const std::string& sql, std::initializer_list<PgValue> values) {
  if (failed()) return {};
  const std::string name = Prepared(sql, values);
  if (failed()) return {};
  std::vector<Parameter> parameters;
  for (const PgValue& value : values) parameters.push_back(ToParameter(value));
  std::vector<const char*> data;
  std::vector<int> sizes;
  for (const Parameter& parameter : parameters) {
    const bool number = parameter.data == nullptr && parameter.size > 0;
    data.push_back(number ? parameter.number.data() : parameter.data);
    sizes.push_back(parameter.size);
  }
  const std::vector<int> binary(data.size(), 1);
  return Answer(PQsendQueryPrepared(connection_, name.c_str(), static_cast<int>(data.size()),
                                    data.data(), sizes.data(), binary.data(),
                                    /*resultFormat=*/1));
}

void Connection::RunScript(const std::string& sql) {
  if (!failed()) Answer(PQsendQuery(connection_, sql.c_str()));
}

std::string Connection::Prepared(const std::string& sql, std::initializer_list<PgValue> values) {
  const auto known = prepared_.find(sql);
  if (known != prepared_.end()) return known->second;
  std::vector<Oid> types;
  for (const PgValue& value : values) types.push_back(ToParameter(value).type);
  std::string name = absl::StrCat("s", prepared_.size());
  Answer(PQsendPrepare(connection_, name.c_str(), sql.c_str(), static_cast<int>(types.size()),
                       types.data()));
  if (!failed()) prepared_.emplace(sql, name);
  return name;
}

bool Connection::AwaitResult(std::chrono::steady_clock::time_point began) {
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0 || (unsent == 0 && PQisBusy(connection_) == 0)) return true;
    const absl::Duration left =
        patience_ - absl::FromChrono(std::chrono::steady_clock::now() - began);
    if (left <= absl::ZeroDuration()) return false;
    pollfd socket = {PQsocket(connection_), POLLIN, 0};
    if (unsent > 0) socket.events |= POLLOUT;
    // Interrupted and failed waits need no care: reading tells of a socket that is broken.
    poll(&socket, 1,
         static_cast<int>(
             absl::ToInt64Milliseconds(std::min(left + absl::Milliseconds(1), kPollAtMost))));
    if (PQconsumeInput(connection_) == 0) return true;
  }
}

Rows Connection::AwaitLast() {
  const auto began = std::chrono::steady_clock::now();
  Rows last;
  for (;;) {
    if (!AwaitResult(began)) {
      timed_out_ = true;
      return {};
    }
    PGresult* const next = PQgetResult(connection_);
    if (next == nullptr) return last;
    last = Rows(next);
  }
}

Rows Connection::Answer(int sent) {
  Rows rows = sent == 0 ? Rows() : AwaitLast();
  if (timed_out_) {
    lost_ = true;
    sql_state_.clear();
    status_ = ErrorOf(
        absl::StrCat(where_, ": it has not answered for ", absl::FormatDuration(patience_)), "");
    return {};
  }
  const PGresult* const result = rows.result();
  const ExecStatusType code = PQresultStatus(result);
  if (code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK) return rows;
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  sql_state_ = state == nullptr ? "" : state;
  if (PQstatus(connection_) != CONNECTION_OK || EndsConnection(sql_state_)) lost_ = true;
  // The primary message has no values of parameters; the details may have.
  const char* const primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string message = OneLine(primary != nullptr ? primary : PQerrorMessage(connection_));
  status_ = ErrorOf(absl::StrCat(where_, ": ", message,
                                 sql_state_.empty() ? "" : absl::StrCat(" (", sql_state_, ")")),
                    lost_ ? "" : sql_state_);
  return {};
}

}  // namespace wan::server
