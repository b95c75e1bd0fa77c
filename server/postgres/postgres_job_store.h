// The JobStore of servers that keep their jobs in PostgreSQL (docs/operate/postgresql.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/store/job_store.h"

namespace wan::server {

// Connects to the database at `url`, which must pass CheckPostgresUrl, locks it against other
// servers, and creates or migrates the schema. Fails with UNAVAILABLE if the database cannot be
// reached or another server uses it; PERMISSION_DENIED if the role may not create the schema;
// FAILED_PRECONDITION if a newer server wrote it or the database does not fit. No error has the
// reason STORAGE_UNAVAILABLE. Also fails with the error of `accept` (may be null), which is called
// before the server that used the database last is cut off from it; `database_id` names the
// database for its life, in hexadecimal digits.
//
// Later, a connection that is lost is replaced at the next call. If another server has used the
// database meanwhile, all changes are refused until this server is started again.
//
// A damaged row loses only its own job: the first call that reads it notes the damage in the row,
// and calls `on_problem` (may be null) on the calling thread with no lock held.
absl::StatusOr<std::unique_ptr<JobStore>> OpenPostgresJobStore(
    const std::string& url, std::function<void(const absl::Status&)> on_problem = nullptr,
    Clock& clock = SystemClock(),
    const std::function<absl::Status(const std::string& database_id)>& accept = nullptr);

}  // namespace wan::server
