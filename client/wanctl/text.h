// Formats numbers, texts and errors for the terminal. All functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/timestamp.pb.h"

namespace wan::client {

// Replaces control characters by '?', so that text from a server cannot control the terminal.
std::string Printable(std::string_view text);

// Returns a duration as "0:09", "12:34", or "1:02:03", rounded to seconds.
std::string FormatClock(double seconds);

// Returns a number of bytes as "512 B", "1.5 KiB", or "31.3 GiB".
std::string FormatBytes(uint64_t bytes);

// Returns the time in UTC, for example "2026-01-31 12:00:00Z"; empty if `time` is not set.
std::string FormatTime(const google::protobuf::Timestamp& time);

// Returns "INVALID_ARGUMENT: message", or "UNAVAILABLE (REASON): message" if the error has a
// reason, followed by indented lines for each field violation and the retry delay; without a final
// newline.
std::string FormatError(const absl::Status& status);

enum class Colour { kNone, kBold, kRed, kGreen, kYellow };

// Returns `text` between the codes that make the terminal show it in the colour.
std::string Coloured(std::string_view text, Colour colour);

// Returns the first `columns` code points of `text`.
std::string CutToWidth(std::string_view text, int columns);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  // Returns the colour in which a cell is shown; null: the column has no colours.
  Colour (*colour)(std::string_view cell) = nullptr;
  // The column is left out if all of its cells have this text; empty: the column is always shown.
  std::string usual = {};
};

// The text of a cell that has no value.
inline constexpr char kAbsent[] = "-";

// Returns a line of titles and a line for each row; every row must have one cell for each column.
// Columns are as wide as their widest cell, with two spaces between them. If `colours` is true,
// titles are bold and cells have the colours of their columns.
std::string FormatTable(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows, bool colours = false);

}  // namespace wan::client
