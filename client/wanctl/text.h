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

// Replaces control characters by '?', so that text from a server cannot control the terminal.
std::string Printable(std::string_view text);

// Returns "0:09", "12:34", or "1:02:03", rounded to seconds.
std::string FormatClock(double seconds);

// Returns "512 B", "1.5 KiB", or "31.3 GiB".
std::string FormatBytes(uint64_t bytes);

// Returns UTC, for example "2026-01-31 12:00:00Z"; empty if `time` is unset.
std::string FormatTime(const google::protobuf::Timestamp& time);

// Returns "INVALID_ARGUMENT: message", or "UNAVAILABLE (REASON): message" if the error has a
// reason, followed by indented lines for each field violation and the retry delay; without a final
// newline.
std::string FormatError(const absl::Status& status);

enum class Colour { kNone, kBold, kRed, kGreen, kYellow };

// Returns `text` between the terminal's codes for the colour.
std::string Coloured(std::string_view text, Colour colour);

// Returns the first `columns` code points of `text`.
std::string CutToWidth(std::string_view text, int columns);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  // Returns the colour of a cell; null: no colours.
  Colour (*colour)(std::string_view cell) = nullptr;
};

// Text of a cell without a value.
inline constexpr char kAbsent[] = "-";

// Returns a line of titles and one for each row, which must have one cell for each column. Columns
// are as wide as their widest cell, with two spaces between them. With `colours` titles are bold
// and cells have the colours of their columns.
std::string FormatTable(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows, bool colours = false);

}  // namespace wan::client
