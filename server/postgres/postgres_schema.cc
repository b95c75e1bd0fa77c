#include "server/postgres/postgres_schema.h"

#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// Step N of the list takes a schema from version N to N + 1. A step never changes once it was
// released, and only adds: the server of the version before must be able to go on with the result,
// or the step must also raise schema_info.oldest_server.
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE jobs (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- order of acceptance
  name text COLLATE "C" NOT NULL UNIQUE,     -- jobs/ID
  owner text COLLATE "C" NOT NULL,
  request_key bytea UNIQUE,                  -- OWNER<newline>REQUEST_ID; null: none
  request_digest text NOT NULL,              -- SHA-256 of the request as asked for
  tied_to_caller boolean NOT NULL,
  state smallint NOT NULL,                   -- wan.v1.JobState
  model text COLLATE "C" NOT NULL,
  priority bigint NOT NULL,
  create_time bigint NOT NULL,               -- microseconds since the epoch
  end_time bigint NOT NULL,                  -- the same; 2^63 - 1 until the job has ended
  ended bigint NOT NULL DEFAULT 0,           -- order of the ends; 0: not ended
  file_bytes bigint NOT NULL DEFAULT 0,      -- of artifacts that are there
  entry_bytes bigint NOT NULL DEFAULT 0,     -- of rows, events and report
  labels bytea NOT NULL,                     -- wan.v1.GenerationRequest with nothing but labels
  job bytea NOT NULL,                        -- wan.v1.Job
  damage text                                -- what is wrong with the row, which nobody reads then
);
CREATE SEQUENCE ends;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_model ON jobs (model, number);
CREATE INDEX jobs_by_end ON jobs (end_time, number);
CREATE INDEX jobs_by_priority ON jobs (priority, number);
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE INDEX jobs_by_owner_and_end ON jobs (owner, end_time, number);
CREATE INDEX jobs_by_owner_and_priority ON jobs (owner, priority, number);
CREATE INDEX jobs_by_ended ON jobs (state, ended) WHERE ended > 0;
CREATE INDEX jobs_by_age ON jobs (state, end_time) WHERE ended > 0;
CREATE INDEX jobs_with_files_by_ended ON jobs (state, ended) WHERE ended > 0 AND file_bytes > 0;
CREATE INDEX jobs_with_files_by_age ON jobs (state, end_time) WHERE ended > 0 AND file_bytes > 0;

CREATE TABLE events (                        -- pieces of logs: what one change added
  job bigint NOT NULL,
  first bigint NOT NULL,                     -- sequences
  last bigint NOT NULL,
  events bytea NOT NULL,                     -- each wan.v1.Event after its length as a varint
  PRIMARY KEY (job, first)
);
CREATE TABLE reports (job bigint PRIMARY KEY, report bytea NOT NULL);  -- wan.v1.JobReport
CREATE TABLE inputs (                        -- files of requests, until the job has ended
  job bigint NOT NULL,
  field text NOT NULL,                       -- of wan.v1.GenerationRequest
  content bytea NOT NULL,
  PRIMARY KEY (job, field)
);
ALTER TABLE inputs ALTER COLUMN content SET STORAGE EXTERNAL;  -- they are compressed already
CREATE TABLE job_files (                     -- what the model of a job's latest attempt was read from
  job bigint NOT NULL,
  name bytea NOT NULL,                       -- as in wan.v1.ModelFile
  size_bytes bigint NOT NULL,
  digest_key bytea NOT NULL,                 -- of the file of digests
  sha256 bytea NOT NULL,                     -- hexadecimal digits; empty: not known yet
  PRIMARY KEY (job, name)
);
CREATE TABLE webhooks (                      -- reports of jobs' ends that were not delivered yet
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ended_job bigint NOT NULL UNIQUE,          -- its number; the job itself may be gone
  job bytea NOT NULL,                        -- wan.v1.Job as it ended, without its prompts
  attempts bigint NOT NULL DEFAULT 0,
  due bigint NOT NULL DEFAULT 0              -- the next attempt, microseconds since the epoch
);
CREATE TABLE removed_jobs (                  -- the latest names of jobs that were removed
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  owner text COLLATE "C" NOT NULL
);
CREATE TABLE removed_use (                   -- what jobs that were removed have used of the device
  owner text COLLATE "C" NOT NULL,
  minute bigint NOT NULL,                    -- in which they ended, since the epoch
  seconds double precision NOT NULL,
  PRIMARY KEY (owner, minute)
);
CREATE INDEX removed_use_by_minute ON removed_use (minute);

CREATE TABLE ended_totals (                  -- the space that ended jobs take; a trigger counts
  owner text COLLATE "C" NOT NULL,
  state smallint NOT NULL,
  jobs bigint NOT NULL,
  jobs_with_files bigint NOT NULL,
  file_bytes bigint NOT NULL,
  entry_bytes bigint NOT NULL,
  PRIMARY KEY (owner, state)
);
CREATE FUNCTION add_to_totals(job jobs, sign bigint) RETURNS void LANGUAGE sql
SET search_path = wanserve AS $$
  INSERT INTO ended_totals AS t
  SELECT job.owner, job.state, sign, CASE WHEN job.file_bytes > 0 THEN sign ELSE 0 END,
         sign * job.file_bytes, sign * job.entry_bytes
  WHERE job.ended > 0 AND job.damage IS NULL
  ON CONFLICT (owner, state) DO UPDATE SET jobs = t.jobs + excluded.jobs,
    jobs_with_files = t.jobs_with_files + excluded.jobs_with_files,
    file_bytes = t.file_bytes + excluded.file_bytes,
    entry_bytes = t.entry_bytes + excluded.entry_bytes
$$;
CREATE FUNCTION count_ended() RETURNS trigger LANGUAGE plpgsql SET search_path = wanserve AS $$
BEGIN
  PERFORM add_to_totals(OLD, -1);
  IF TG_OP = 'UPDATE' THEN PERFORM add_to_totals(NEW, 1); END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER ended_jobs_change AFTER UPDATE OF state, ended, file_bytes, entry_bytes, damage
  ON jobs FOR EACH ROW WHEN (OLD.ended > 0 OR NEW.ended > 0) EXECUTE FUNCTION count_ended();
CREATE TRIGGER ended_jobs_delete AFTER DELETE ON jobs
  FOR EACH ROW WHEN (OLD.ended > 0) EXECUTE FUNCTION count_ended();
)sql"};
constexpr int64_t kSchemaVersion = static_cast<int64_t>(std::size(kMigrations));

// The tables that say what the schema is. They never change.
constexpr char kCreateInfo[] = R"sql(
CREATE TABLE IF NOT EXISTS schema_info (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version bigint NOT NULL,                   -- what the newest server has made of the schema
  oldest_server bigint NOT NULL,             -- the lowest version that a server must know to use it
  id bytea NOT NULL,                         -- random, names the database
  secret_key bytea NOT NULL,                 -- for what callers keep and must not read
  sole_server bytea                          -- random, names the server that used it last
);
INSERT INTO schema_info (version, oldest_server, id, secret_key)
  SELECT 0, 1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) ||
           uuid_send(gen_random_uuid()))
  ON CONFLICT DO NOTHING;
)sql";

// The oldest PostgreSQL that the server is made for.
constexpr int kOldestPostgres = 140000;

// The advisory lock of the server that uses the database.
constexpr char kLock[] = "x'77616e73'::int, 1";

absl::Status UsedBy(Connection& connection) {
  const Rows holder = connection.Run(
      "SELECT host(client_addr), pid::bigint, to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') "
      "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted "
      "AND classid = x'77616e73'::int::oid AND objid = 1 AND objsubid = 2 "
      "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  std::string who;
  if (!holder.empty()) {
    const std::string address = holder.Text(0, 0);
    who = absl::StrCat(" (from ", address.empty() ? "this machine" : address, ", connected since ",
                       holder.Text(0, 2), ", backend ", holder.Int(0, 1), ")");
  }
  connection.TakeStatus().IgnoreError();
  return absl::UnavailableError(
      absl::StrCat(connection.where(), ": another server uses the database", who,
                   "; stop that server, or give this one a database of its own"));
}

// Call it in a transaction. There is no limit of time, because a migration takes the longer the
// more rows there are.
void RunMigrations(Connection& connection, int64_t version) {
  const absl::Duration patience = connection.patience();
  connection.set_patience(absl::InfiniteDuration());
  connection.RunScript("SET LOCAL statement_timeout = 0");
  for (int64_t step = version; step < kSchemaVersion; ++step) {
    connection.RunScript(kMigrations[step]);
  }
  connection.Run("UPDATE schema_info SET version = $1", {kSchemaVersion});
  connection.set_patience(patience);
}

}  // namespace

absl::Status SoleServer::Take(Connection& connection) {
  if (backend_ != 0) {
    connection.Run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid = $1 AND backend_start::text = $2 AND pid <> pg_backend_pid()",
        {backend_, std::string_view(since_)});
  }
  connection.RunScript("SET lock_timeout = '3s'");
  connection.RunScript(absl::StrCat("SELECT pg_advisory_lock(", kLock, ")"));
  if (connection.failed() && connection.sql_state() == "55P03") {
    connection.TakeStatus().IgnoreError();
    return UsedBy(connection);
  }
  // A lock that somebody else holds in the tables must not stop all writes for long.
  connection.RunScript("SET lock_timeout = '5s'");
  const Rows session = connection.Run(
      "SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()");
  if (!life_.empty()) {
    const Rows last = connection.Run("SELECT sole_server FROM schema_info");
    if (!connection.failed() && last.Text(0, 0) != life_) {
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat(
              connection.where(),
              ": another server has used the database while this one was disconnected, so this one "
              "no longer knows its jobs; stop one of them, and restart this server")),
          kReasonStorageUnavailable);
    }
  }
  if (absl::Status status = connection.TakeStatus(); !status.ok()) return status;
  backend_ = connection.backend();
  since_ = session.Text(0, 0);
  return absl::OkStatus();
}

absl::Status SoleServer::Begin(Connection& connection) {
  const Rows noted = connection.Run(
      "UPDATE schema_info SET sole_server = uuid_send(gen_random_uuid()) RETURNING sole_server");
  life_ = noted.Text(0, 0);
  return connection.TakeStatus();
}

absl::Status MigrateSchema(Connection& connection) {
  const std::string& where = connection.where();
  if (connection.version() < kOldestPostgres) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": is PostgreSQL ", connection.version() / 10000,
                     "; must be PostgreSQL ", kOldestPostgres / 10000, " or later"));
  }
  const std::string encoding = connection.Run("SHOW server_encoding").Text(0, 0);
  if (!connection.failed() && encoding != "UTF8") {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": has the encoding ", encoding,
                     "; must have UTF8, for example CREATE DATABASE wan ENCODING 'UTF8' TEMPLATE "
                     "template0"));
  }
  connection.RunScript("BEGIN");
  if (connection.Run("SELECT to_regclass('wanserve.schema_info') IS NOT NULL").Int(0, 0) == 0) {
    // The owner of a schema need not have the right to create one.
    if (connection.Run("SELECT to_regnamespace('wanserve') IS NULL").Bool(0, 0)) {
      connection.RunScript("CREATE SCHEMA wanserve");
    }
    connection.RunScript(kCreateInfo);
  }
  const Rows info = connection.Run("SELECT version, oldest_server FROM schema_info");
  const int64_t version = info.Int(0, 0);
  if (!connection.failed() && info.Int(0, 1) > kSchemaVersion) {
    connection.RunScript("ROLLBACK");
    connection.TakeStatus().IgnoreError();
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": the schema has version ", version, " and needs a server that knows version ",
        info.Int(0, 1), ", but this server knows versions up to ", kSchemaVersion,
        "; start the newer server that wrote it"));
  }
  if (version < kSchemaVersion) RunMigrations(connection, version);
  connection.RunScript("COMMIT");
  return connection.TakeStatus();
}

absl::StatusOr<std::string> DatabaseId(Connection& connection) {
  const std::string id = connection.Run("SELECT id FROM schema_info").Text(0, 0);
  if (absl::Status status = connection.TakeStatus(); !status.ok()) return status;
  return absl::BytesToHexString(id);
}

}  // namespace wan::server
