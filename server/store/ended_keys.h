// Keeps count of the space that ended jobs take, and finds the oldest ended jobs, for retention and
// quotas.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call all functions of this file with the connection's lock held. The functions throw the
// exceptions of SQLite. Each function does a bounded amount of work, because triggers of the schema
// maintain the totals by owner and state.

// Records in job_keys how many bytes an ended job takes; does nothing for other jobs. Call NoteEnd
// inside a transaction, after the job's rows are written.
void NoteEnd(SQLite::Database& db, int64_t number, const wan::v1::Job& job);

std::map<wan::v1::JobState, EndedTotals> ReadEndedTotals(SQLite::Database& db,
                                                         const std::optional<std::string>& owner);

std::vector<EndedJob> ReadOldestEnded(SQLite::Database& db, const EndedQuery& query);

}  // namespace wan::server
