// Formats numbers, texts and errors for a terminal. All functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace wan::client {

// Replaces control characters by '?', so that text from a server cannot steer the terminal. Leaves
// other UTF-8 as it is.
std::string Printable(std::string_view text);

// "0:09", "12:34", "1:02:03"; to the nearest second.
std::string FormatClock(double seconds);

// "512 B", "1.5 KiB", "31.3 GiB".
std::string FormatBytes(uint64_t bytes);

// Returns UTC, for example "2026-01-31 12:00:00Z"; empty if `time` is not set.
std::string FormatTime(const google::protobuf::Timestamp& time);

// Returns "INVALID_ARGUMENT: message", or "UNAVAILABLE (REASON): message" if the details have a
// reason. Every field violation, and when to try again, follow on indented lines of their own.
// There is no newline at the end.
std::string FormatError(const absl::Status& status);

enum class Colour { kNone, kBold, kRed, kGreen, kYellow };

// Returns `text` between the codes of a terminal.
std::string Coloured(std::string_view text, Colour colour);

// Returns the first `columns` code points of `text`.
std::string CutToWidth(std::string_view text, int columns);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  // The colour of a cell; null: none has one.
  Colour (*colour)(std::string_view cell) = nullptr;
};

// The text of a cell without a value.
inline constexpr char kAbsent[] = "-";

// Returns one line for the titles and one for each row. Columns are as wide as their widest cell,
// with two spaces between them. Each row must have one cell for each column. With `colours` titles
// are bold, and cells have the colours of their columns.
std::string FormatTable(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows, bool colours = false);

}  // namespace wan::client
