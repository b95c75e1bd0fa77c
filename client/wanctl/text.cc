#include "client/wanctl/text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/error.h"

namespace wan::client {
namespace {

// Returns the number of code points; the text must be UTF-8, as protobuf's strings are.
size_t Width(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Whether the message itself contains all violations, as wanserve's messages do for clients that do
// not read the details.
bool RepeatsViolations(absl::string_view message, const std::vector<FieldViolation>& violations) {
  return !violations.empty() &&
         std::all_of(violations.begin(), violations.end(), [&](const FieldViolation& violation) {
           return absl::StrContains(message, violation.description);
         });
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = text[i];
    const unsigned char next = i + 1 < text.size() ? text[i + 1] : 0xFF;
    // U+0080 to U+009F are control characters as well, and some terminals obey them.
    const bool two_bytes = c == 0xC2 && next < 0xA0;
    const bool control = c < 0x20 || c == 0x7F || two_bytes;
    printable += control ? '?' : text[i];
    if (two_bytes) ++i;
  }
  return printable;
}

std::string FormatClock(double seconds) {
  // Values that are not finite are shown as 0.
  const int64_t total =
      std::isfinite(seconds) && seconds > 0 && seconds < 1e9 ? std::llround(seconds) : 0;
  if (total < 3600) return absl::StrFormat("%d:%02d", total / 60, total % 60);
  return absl::StrFormat("%d:%02d:%02d", total / 3600, total / 60 % 60, total % 60);
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string FormatTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

std::string FormatError(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  std::string text = absl::StatusCodeToString(status.code());
  if (!details.reason.empty() && details.reason != text) {
    absl::StrAppend(&text, " (", Printable(details.reason), ")");
  }
  absl::StrAppend(&text, ":");
  if (!RepeatsViolations(status.message(), details.violations)) {
    absl::StrAppend(&text, " ", Printable({status.message().data(), status.message().size()}));
  }
  for (const FieldViolation& violation : details.violations) {
    absl::StrAppend(&text, "\n  ", Printable(violation.field), ": ",
                    Printable(violation.description));
  }
  if (details.retry_delay) {
    absl::StrAppend(&text, "\n  try again in ", absl::FormatDuration(*details.retry_delay));
  }
  return text;
}

std::string Coloured(std::string_view text, Colour colour) {
  const char* code = nullptr;
  switch (colour) {
    case Colour::kNone:
      return std::string(text);
    case Colour::kBold:
      code = "1";
      break;
    case Colour::kRed:
      code = "31";
      break;
    case Colour::kGreen:
      code = "32";
      break;
    case Colour::kYellow:
      code = "33";
      break;
  }
  return absl::StrCat("\x1b[", code, "m", std::string(text), "\x1b[0m");
}

std::string CutToWidth(std::string_view text, int columns) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++seen > columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

std::string FormatTable(const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows, bool colours) {
  std::vector<size_t> shown;
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    widths.push_back(Width(columns[i].title));
    bool says_nothing = !columns[i].usual.empty();
    for (const std::vector<std::string>& row : rows) {
      widths[i] = std::max(widths[i], Width(row[i]));
      says_nothing = says_nothing && row[i] == columns[i].usual;
    }
    if (!says_nothing) shown.push_back(i);
  }
  std::string table;
  // `colour_of` is a function (column, cell) -> Colour.
  const auto append = [&](const std::vector<std::string>& row, const auto& colour_of) {
    std::string line;
    for (const size_t i : shown) {
      const bool last = i == shown.back();
      const std::string padding(widths[i] - Width(row[i]), ' ');
      const std::string cell = colours ? Coloured(row[i], colour_of(columns[i], row[i])) : row[i];
      if (i != shown.front()) line += "  ";
      line += columns[i].align == Align::kRight ? padding + cell : last ? cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  };
  append(titles, [](const Column&, const std::string&) { return Colour::kBold; });
  for (const std::vector<std::string>& row : rows) {
    append(row, [](const Column& column, const std::string& cell) {
      return column.colour == nullptr ? Colour::kNone : column.colour(cell);
    });
  }
  return table;
}

}  // namespace wan::client
