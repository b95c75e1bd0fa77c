// Reads and writes the table events in PostgreSQL, which has one row for the events that one change
// added to a job: a commit of several events then writes one row and one entry of an index.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/postgres/connection.h"
#include "server/store/stored_rows.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Adds events to the job of this number, inside a transaction. `replaced` is the sequence from
// which on an earlier, refused change may have left events; if it is set, first removes those that
// `events` replace. Fails with INTERNAL unless the first event follows the last stored one.
absl::Status InsertPiece(Connection& connection, int64_t number,
                         std::span<const wan::v1::Event> events, std::optional<int64_t> replaced);

// Returns at most `limit` events with a sequence greater than `after`, in ascending order. An event
// that cannot be read ends the list with an empty text in its place.
std::vector<EventRow> PieceRows(Connection& connection, std::string_view job, int64_t after,
                                int limit);

}  // namespace wan::server
