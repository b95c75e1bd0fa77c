#include "server/conversion/quantity.h"

#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

struct Unit {
  std::string_view name;
  uint64_t size;  // how many bytes or seconds the unit has
};

// BytesText uses only the binary units.
constexpr Unit kBinaryUnits[] = {{"TiB", uint64_t{1} << 40},
                                 {"GiB", uint64_t{1} << 30},
                                 {"MiB", uint64_t{1} << 20},
                                 {"KiB", uint64_t{1} << 10},
                                 {"B", 1}};
constexpr Unit kDecimalUnits[] = {{"TB", 1'000'000'000'000},
                                  {"GB", 1'000'000'000},
                                  {"MB", 1'000'000},
                                  {"kB", 1'000},
                                  {"KB", 1'000}};
constexpr Unit kTimeUnits[] = {{"d", 86'400}, {"h", 3'600}, {"m", 60}, {"s", 1}};

// A number and its unit: "1.5 TiB" is split into "1.5" and "TiB".
struct Quantity {
  std::string_view number;
  std::string_view unit;
};

Quantity Split(std::string_view text) {
  const size_t end = text.find_last_of("0123456789.");
  if (end == std::string_view::npos) return {"", text};
  Quantity quantity{text.substr(0, end + 1), text.substr(end + 1)};
  if (quantity.unit.size() > 1 && quantity.unit.front() == ' ') quantity.unit.remove_prefix(1);
  return quantity;
}

std::optional<uint64_t> SizeOf(std::string_view unit, std::span<const Unit> units) {
  for (const Unit& candidate : units) {
    if (candidate.name == unit) return candidate.size;
  }
  return std::nullopt;
}

std::optional<uint64_t> BytesOf(std::string_view unit) {
  if (const std::optional<uint64_t> size = SizeOf(unit, kBinaryUnits)) return size;
  return SizeOf(unit, kDecimalUnits);
}

std::optional<uint64_t> Whole(std::string_view digits) {
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::string Text(uint64_t number, std::span<const Unit> units) {
  if (number == 0) return "0";
  for (const Unit& unit : units) {
    if (number % unit.size == 0) {
      return absl::StrCat(number / unit.size, std::string(unit.name));
    }
  }
  return "";  // never reached, because the last unit has size 1
}

}  // namespace

std::optional<uint64_t> ParseBytes(std::string_view text, uint64_t most) {
  // Compute with integers, because a double cannot hold every number of bytes. Further decimals are
  // worth less than a byte.
  constexpr size_t kMostDecimals = 12;
  const Quantity quantity = Split(text);
  const std::optional<uint64_t> size = quantity.unit.empty() ? 1 : BytesOf(quantity.unit);
  const size_t point = quantity.number.find('.');
  const std::optional<uint64_t> whole = Whole(quantity.number.substr(0, point));
  if (!size.has_value() || !whole.has_value()) return std::nullopt;
  absl::uint128 bytes = absl::uint128(*whole) * *size;
  if (point != std::string_view::npos) {
    const std::string_view decimals = quantity.number.substr(point + 1);
    const std::optional<uint64_t> fraction = Whole(decimals);
    if (!fraction.has_value() || decimals.size() > kMostDecimals || *size == 1) return std::nullopt;
    absl::uint128 scale = 1;
    for (size_t i = 0; i < decimals.size(); ++i) scale *= 10;
    bytes += absl::uint128(*fraction) * *size / scale;
  }
  if (bytes > most) return std::nullopt;
  return absl::Uint128Low64(bytes);
}

std::string BytesText(uint64_t bytes) { return Text(bytes, kBinaryUnits); }

std::string BytesRule(uint64_t most) {
  return absl::StrCat("a number of bytes from 0 to ", BytesText(most),
                      ", with or without a unit (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB), for "
                      "example 24GiB");
}

std::optional<double> ParseSeconds(std::string_view text, double most) {
  const Quantity quantity = Split(text);
  const std::optional<uint64_t> size =
      quantity.unit.empty() ? 1 : SizeOf(quantity.unit, kTimeUnits);
  double number = 0;
  const char* const end = quantity.number.data() + quantity.number.size();
  const auto [stopped, error] = std::from_chars(quantity.number.data(), end, number);
  if (!size.has_value() || error != std::errc() || stopped != end) return std::nullopt;
  const double seconds = number * static_cast<double>(*size);
  if (!std::isfinite(seconds) || seconds < 0 || seconds > most) return std::nullopt;
  return seconds;
}

std::string SecondsText(int64_t seconds) {
  return Text(static_cast<uint64_t>(seconds), kTimeUnits);
}

std::string SecondsRule(double most) {
  // Convert the number to an integer, because StrCat would write a double as 1e+09.
  return absl::StrCat("a number of seconds from 0 to ", static_cast<int64_t>(most),
                      ", with or without a unit (s, m, h, d), for example 90 or 1.5h");
}

bool HasBytesUnit(std::string_view text) { return BytesOf(Split(text).unit).has_value(); }

bool HasSecondsUnit(std::string_view text) {
  return SizeOf(Split(text).unit, kTimeUnits).has_value();
}

}  // namespace wan::server
