#include "benchmarks/bench_row.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

std::string Seconds(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.4f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3f ms", seconds * 1e3);
  return absl::StrFormat("%.2f us", seconds * 1e6);
}

std::string Rate(const Work& work, double seconds) {
  if (work.flop() > 0) {
    const double rate = work.flop() / seconds;
    return rate >= 1e12 ? absl::StrFormat("%.1f TFLOP/s", rate / 1e12)
                        : absl::StrFormat("%.2f GFLOP/s", rate / 1e9);
  }
  const double bytes = work.bytes + work.upload_bytes + work.download_bytes;
  return bytes > 0 ? absl::StrFormat("%.2f GB/s", bytes / seconds / 1e9) : "";
}

std::string Text(const Figure& figure) {
  struct Printer {
    std::string operator()(bool value) const { return value ? "yes" : "no"; }
    std::string operator()(int64_t value) const { return absl::StrCat(value); }
    std::string operator()(double value) const { return absl::StrFormat("%.6g", value); }
    std::string operator()(const std::string& value) const { return value; }
  };
  return absl::StrCat(figure.key, " ", std::visit(Printer(), figure.value));
}

template <typename Number>
std::string Whole(const std::optional<Number>& number) {
  return number.has_value() ? absl::StrFormat("%.0f", *number) : "";
}

template <typename Value>
void SetIfPresent(Json& json, const char* key, const std::optional<Value>& value) {
  if (value.has_value()) json[key] = *value;
}

void SetIfPositive(Json& json, const char* key, double value) {
  if (value > 0) json[key] = value;
}

}  // namespace

std::optional<double> BenchRow::Ratio() const {
  if (!timing.has_value() || ceiling_seconds.value_or(0) <= 0) return std::nullopt;
  return timing->seconds / *ceiling_seconds;
}

void AddPart(const Work& part, const std::optional<double>& floor, BenchRow& row) {
  if (!row.work.has_value()) {
    row.work = part;
    row.ceiling_seconds = floor;
    return;
  }
  Work& sum = *row.work;
  sum.product_flop += part.product_flop;
  sum.attention_flop += part.attention_flop;
  sum.bytes += part.bytes;
  sum.upload_bytes += part.upload_bytes;
  sum.download_bytes += part.download_bytes;
  if (sum.precision != part.precision) sum.precision = kMixed;
  if (row.ceiling_seconds.has_value() && floor.has_value()) {
    *row.ceiling_seconds += *floor;
  } else {
    row.ceiling_seconds.reset();
  }
}

std::string ToJsonLine(const BenchRow& row) {
  Json json = {{"command", row.command}, {"name", row.name}, {"device", row.device}};
  if (row.timing.has_value()) {
    json["seconds"] = row.timing->seconds;
    json["least_seconds"] = row.timing->least;
    json["most_seconds"] = row.timing->most;
    json["calls"] = row.timing->calls;
  }
  if (row.work.has_value()) {
    const Work& work = *row.work;
    json["precision"] = work.precision;
    SetIfPositive(json, "product_flop", work.product_flop);
    SetIfPositive(json, "attention_flop", work.attention_flop);
    SetIfPositive(json, "bytes", work.bytes);
    SetIfPositive(json, "upload_bytes", work.upload_bytes);
    SetIfPositive(json, "download_bytes", work.download_bytes);
    if (row.timing.has_value()) {
      const double seconds = row.timing->seconds;
      SetIfPositive(json, "flop_per_second", work.flop() / seconds);
      SetIfPositive(json, "bytes_per_second",
                    (work.bytes + work.upload_bytes + work.download_bytes) / seconds);
    }
  }
  SetIfPresent(json, "ceiling_seconds", row.ceiling_seconds);
  SetIfPresent(json, "ratio", row.Ratio());
  SetIfPresent(json, "sm_clock_mhz", row.card.sm_clock_mhz);
  SetIfPresent(json, "power_watts", row.card.power_watts);
  SetIfPresent(json, "temperature_celsius", row.card.temperature_celsius);
  SetIfPresent(json, "throttle_reasons", row.card.throttle_reasons);
  for (const Figure& figure : row.figures) {
    std::visit([&](const auto& value) { json["figures"][figure.key] = value; }, figure.value);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TableHeader() {
  return "| what | time | rate | x ceiling | MHz | W | held down by | |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
}

std::string TableRow(const BenchRow& row) {
  const bool timed = row.timing.has_value();
  const std::optional<double> ratio = row.Ratio();
  return absl::StrCat(
      "| ", row.name, " | ", timed ? Seconds(row.timing->seconds) : "", " | ",
      timed && row.work.has_value() ? Rate(*row.work, row.timing->seconds) : "", " | ",
      ratio.has_value() ? absl::StrFormat("%.3f", *ratio) : "", " | ", Whole(row.card.sm_clock_mhz),
      " | ", Whole(row.card.power_watts), " | ",
      row.card.throttle_reasons.has_value() ? absl::StrJoin(*row.card.throttle_reasons, ", ") : "",
      " | ",
      absl::StrJoin(row.figures, ", ",
                    [](std::string* out, const Figure& figure) { out->append(Text(figure)); }),
      " |\n");
}

}  // namespace wan
