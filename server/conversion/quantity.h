// Parses and writes sizes and durations with units, for the settings and the quota file. All
// functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Parses "24GiB", "500 MB", "1.5TiB" or "1048576". kB (or KB), MB, GB and TB are powers of 1000,
// KiB to TiB of 1024. A fraction needs a unit and is rounded down to whole bytes. Returns nothing
// for other texts, and for results above `most`; `most` must be below 2^63.
std::optional<uint64_t> ParseBytes(std::string_view text, uint64_t most);

// The inverse of ParseBytes; uses the largest of B, KiB, MiB, GiB and TiB that needs no fraction;
// "0" for 0.
std::string BytesText(uint64_t bytes);

// Describes the texts that ParseBytes accepts, with an example, for messages after "must be ".
std::string BytesRule(uint64_t most);

// Parses "90", "90s", "1.5h" or "30d" to seconds. Returns nothing for other texts, and for results
// below 0 or above `most`.
std::optional<double> ParseSeconds(std::string_view text, double most);

// The inverse of ParseSeconds; uses the largest unit that needs no fraction: "30d" for 2,592,000.
std::string SecondsText(int64_t seconds);

// Describes the texts that ParseSeconds accepts, with an example, for messages after "must be ".
std::string SecondsRule(double most);

// Say whether the text ends with a unit of bytes, or with a unit of time.
bool HasBytesUnit(std::string_view text);
bool HasSecondsUnit(std::string_view text);

}  // namespace wan::server
