// Space that ended jobs take, and the oldest of them, for retention and quotas.
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

// All functions are for the thread that holds the connection's lock. They throw what SQLite throws.
// Each does a bounded amount of work, however many jobs there are, because triggers of the schema
// keep the totals by owner and state.

// Records in job_keys the bytes of an ended job; its rows must be written before. Call it inside a
// transaction. A job that has not ended is left as it is.
void NoteEnd(SQLite::Database& db, int64_t number, const wan::v1::Job& job);

std::map<wan::v1::JobState, EndedTotals> ReadEndedTotals(SQLite::Database& db,
                                                         const std::optional<std::string>& owner);

std::vector<EndedJob> ReadOldestEnded(SQLite::Database& db, const EndedQuery& query);

}  // namespace wan::server
