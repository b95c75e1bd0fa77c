#include "server/postgres/event_pieces.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::StringOutputStream;

std::string ToPiece(std::span<const wan::v1::Event> events) {
  std::string piece;
  {
    StringOutputStream stream(&piece);
    for (const wan::v1::Event& event : events) {
      google::protobuf::util::SerializeDelimitedToZeroCopyStream(event, &stream);
    }
  }
  return piece;
}

// Appends the events of a piece to `rows`. The sequences of a piece have no gap.
void AppendPiece(const std::string& piece, int64_t first, int64_t last,
                 std::vector<EventRow>& rows) {
  ArrayInputStream stream(piece.data(), static_cast<int>(piece.size()));
  CodedInputStream coded(&stream);
  for (int64_t sequence = first; sequence <= last; ++sequence) {
    uint32_t size = 0;
    std::string bytes;
    const bool read = coded.ReadVarint32(&size) && coded.ReadString(&bytes, static_cast<int>(size));
    rows.emplace_back(sequence, read ? std::move(bytes) : std::string());
    if (!read) return;
  }
}

}  // namespace

absl::Status InsertPiece(Connection& connection, int64_t number,
                         std::span<const wan::v1::Event> events, std::optional<int64_t> replaced) {
  if (events.empty()) return absl::OkStatus();
  const int64_t first = events.front().sequence();
  if (replaced.has_value()) {
    // An earlier change of the same transaction may have added events after `replaced`.
    connection.Run("DELETE FROM events WHERE job = $1 AND first >= $2",
                   {number, std::max(*replaced, first)});
  }
  const std::string piece = ToPiece(events);
  const Rows inserted = connection.Run(
      "INSERT INTO events (job, first, last, events) SELECT $1, $2, $3, $4 WHERE $2 = 1 + COALESCE("
      "(SELECT last FROM events WHERE job = $1 ORDER BY first DESC LIMIT 1), 0) RETURNING first",
      {number, first, events.back().sequence(), Bytes{piece}});
  if (!inserted.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("event ", first, " does not follow the last stored event of its job"));
}

std::vector<EventRow> PieceRows(Connection& connection, std::string_view job, int64_t after,
                                int limit) {
  const Rows found = connection.Run(
      // The bound's subselect must not name the outer row, because the bound would be a filter
      // then.
      "SELECT first, last, events FROM events WHERE job = (SELECT number FROM jobs "
      "WHERE name = $1) AND last > $2 AND first >= COALESCE((SELECT MAX(first) FROM events "
      "WHERE job = (SELECT number FROM jobs WHERE name = $1) AND first <= $2 + 1), 0) "
      "ORDER BY first LIMIT $3",
      {job, after, int64_t{limit}});
  std::vector<EventRow> rows;
  for (int row = 0; row < found.size(); ++row) {
    std::vector<EventRow> piece;
    AppendPiece(found.Text(row, 2), found.Int(row, 0), found.Int(row, 1), piece);
    for (EventRow& event : piece) {
      if (event.first <= after) continue;
      if (static_cast<int>(rows.size()) == limit) return rows;
      rows.push_back(std::move(event));
    }
  }
  return rows;
}

}  // namespace wan::server
