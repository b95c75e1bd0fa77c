// The table events of the SQLite store.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// For the thread that holds the connection's lock; the function that writes is called inside a
// transaction. Both throw what SQLite throws.

using EventRow = std::pair<int64_t, std::string>;  // the event's sequence and bytes

// Adds events to the job of this number. Removes first those from the sequence `replaced` on, which
// are there although their change was refused; nothing: there are none.
void InsertEventRows(SQLite::Database& db, int64_t number, std::span<const wan::v1::Event> events,
                     std::optional<int64_t> replaced);

// Returns at most `limit` events with a sequence greater than `after`, in order.
std::vector<EventRow> ReadEventRows(SQLite::Database& db, std::string_view job, int64_t after,
                                    int limit);

}  // namespace wan::server
