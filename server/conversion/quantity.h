// Sizes and durations as people write them, in settings and in the file of quotas. All functions
// are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wan::server {

// Reads "24GiB", "500 MB", "1.5TiB" or "1048576". kB, MB, GB and TB are powers of 1000, KiB to TiB
// powers of 1024; "KB" is "kB". A fraction needs a unit, and the result is rounded down to whole
// bytes. Nothing for another text, and if the result is greater than `most`, which is less than
// 2^63.
std::optional<uint64_t> ParseBytes(std::string_view text, uint64_t most);

// Returns the text with the largest of the units B, KiB, MiB, GiB and TiB that needs no fraction;
// "0" for 0. ParseBytes reads it as the same number.
std::string BytesText(uint64_t bytes);

// Returns what a text of ParseBytes is, with an example; a message puts it after "must be ".
std::string BytesRule(uint64_t most);

// Reads "90", "90s", "1.5h" or "30d". Nothing for another text, and if the result is not from 0 to
// `most` seconds.
std::optional<double> ParseSeconds(std::string_view text, double most);

// Returns the text with the largest unit that needs no fraction: "30d" of 2,592,000. ParseSeconds
// reads it as the same number.
std::string SecondsText(int64_t seconds);

// Returns what a text of ParseSeconds is, with an example; a message puts it after "must be ".
std::string SecondsRule(double most);

// Whether the text ends in a unit of bytes, or in one of time. Where a number alone means something
// else, the unit decides.
bool HasBytesUnit(std::string_view text);
bool HasSecondsUnit(std::string_view text);

}  // namespace wan::server
