// Figures and texts as a terminal shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace wan::client {

// Control characters become '?': what comes from elsewhere cannot steer the terminal. UTF-8 passes.
std::string Printable(std::string_view text);

// "0:09", "12:34", "1:02:03"; to the nearest second.
std::string FormatClock(double seconds);

// "512 B", "1.5 KiB", "31.3 GiB".
std::string FormatBytes(uint64_t bytes);

// UTC, for example "2026-01-31 12:00:00Z"; empty if it is not set.
std::string FormatTime(const google::protobuf::Timestamp& time);

// "INVALID_ARGUMENT: message", with the reason behind the code where the details have one; then,
// each on its own indented line, every field violation and when to try again. No line end at the
// end.
std::string FormatError(const absl::Status& status);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

// What a cell shows for a figure that is absent.
inline constexpr char kAbsent[] = "-";

// Columns as wide as they need, two spaces between them, one line a row, no space at a line's end.
// Each row has one cell a column.
std::string FormatTable(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace wan::client
