// Reads and writes the table events of the SQLite store.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "server/store/statements.h"
#include "server/store/stored_rows.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Call both functions with the connection's lock held, and InsertEventRows inside a transaction.
// The functions throw the exceptions of SQLite.

// Adds events to the job of this number. If `replaced` is set, first removes the events from the
// sequence `replaced` on, which an earlier, refused change has left.
void InsertEventRows(Statements& db, int64_t number, std::span<const wan::v1::Event> events,
                     std::optional<int64_t> replaced);

// Returns at most `limit` events with a sequence greater than `after`, in ascending order.
std::vector<EventRow> ReadEventRows(SQLite::Database& db, std::string_view job, int64_t after,
                                    int limit);

}  // namespace wan::server
