#include "client/wanctl/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/enum_words.h"
#include "proto/lora_schedule_text.h"

namespace wan::client {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Expected(std::string_view what, std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("expects ", View(what), ", not '", View(text), "'"));
}

// Parses the whole text as a number. Returns std::errc() on success, result_out_of_range if T
// cannot hold the number, and invalid_argument for other texts.
template <typename T>
std::errc ReadNumber(std::string_view text, T* value) {
  // from_chars does not accept a plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *value);
  return stopped == end ? error : std::errc::invalid_argument;
}

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  return ReadNumber(text, value) == std::errc();
}

template <typename T>
absl::StatusOr<T> ParseInteger(std::string_view text) {
  T value;
  const std::errc error = ReadNumber(text, &value);
  if (error == std::errc()) return value;
  if (error != std::errc::result_out_of_range) return Expected("a whole number", text);
  return Expected(absl::StrCat("a whole number from ", std::numeric_limits<T>::min(), " to ",
                               std::numeric_limits<T>::max()),
                  text);
}

// Parses "AxBx..." to numbers above 0; returns none for other forms. Accepts '*' in place of 'x',
// because Wan's generate.py writes it so.
std::vector<int32_t> ParseDimensions(std::string_view text) {
  std::vector<int32_t> dimensions;
  for (absl::string_view part : absl::StrSplit(View(text), absl::ByAnyChar("x*"))) {
    absl::StatusOr<int32_t> dimension = ParseCount({part.data(), part.size()});
    if (!dimension.ok()) return {};
    dimensions.push_back(*dimension);
  }
  return dimensions;
}

template <typename T>
struct Choice {
  std::string_view text;
  T value;
};

template <typename T>
absl::StatusOr<T> Choose(std::string_view text, std::span<const Choice<T>> choices) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (absl::EqualsIgnoreCase(View(text), View(choice.text))) return choice.value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", View(choice.text));
  }
  return Expected(absl::StrCat("one of ", names), text);
}

// Parses a word of a protobuf enum, or returns an error that lists all words of the enum.
template <typename Enum>
absl::StatusOr<Enum> ChooseWord(std::string_view text) {
  if (const std::optional<Enum> value = ValueOf<Enum>(text)) return *value;
  return Expected(absl::StrCat("one of ", absl::StrJoin(WordsOf<Enum>(), ", ")), text);
}

constexpr Choice<bool> kTruths[] = {{"true", true}, {"false", false}};

constexpr Choice<bool> kFormats[] = {{"json", true}, {"table", false}};

}  // namespace

absl::StatusOr<int32_t> ParseInt32(std::string_view text) { return ParseInteger<int32_t>(text); }
absl::StatusOr<int64_t> ParseInt64(std::string_view text) { return ParseInteger<int64_t>(text); }

absl::StatusOr<int64_t> ParseFixedSeed(std::string_view text) {
  absl::StatusOr<int64_t> seed = ParseInt64(text);
  if (!seed.ok() || *seed < 0) {
    return Expected("a whole number from 0, so that the run can be repeated", text);
  }
  return seed;
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double value;
  if (!ParseWhole(text, &value) || !std::isfinite(value)) return Expected("a number", text);
  return value;
}

absl::StatusOr<absl::Duration> ParseSeconds(std::string_view text) {
  absl::StatusOr<double> value = ParseNumber(text);
  if (!value.ok() || *value <= 0) return Expected("seconds above 0", text);
  return absl::Seconds(*value);
}

absl::StatusOr<double> ParseLength(std::string_view text) {
  absl::StatusOr<double> value = ParseNumber(text);
  if (!value.ok() || *value <= 0 || *value > 3600) {
    return Expected("seconds above 0, at most 3600", text);
  }
  return value;
}

absl::StatusOr<absl::Duration> ParseSecondsOrZero(std::string_view text) {
  absl::StatusOr<double> value = ParseNumber(text);
  if (!value.ok() || *value < 0) return Expected("seconds, 0 or more", text);
  return absl::Seconds(*value);
}

absl::StatusOr<int32_t> ParseCount(std::string_view text) {
  absl::StatusOr<int32_t> value = ParseInt32(text);
  if (!value.ok() || *value <= 0) return Expected("a whole number above 0", text);
  return value;
}

absl::StatusOr<int32_t> ParseCountOrZero(std::string_view text) {
  absl::StatusOr<int32_t> value = ParseInt32(text);
  if (!value.ok() || *value < 0) return Expected("a whole number, 0 or more", text);
  return value;
}

absl::StatusOr<wan::v1::Shape> ParseSize(std::string_view text) {
  const std::vector<int32_t> dimensions = ParseDimensions(text);
  if (dimensions.size() != 2) return Expected("WIDTHxHEIGHT, for example 1280x704", text);
  wan::v1::Shape shape;
  shape.set_width(dimensions[0]);
  shape.set_height(dimensions[1]);
  return shape;
}

absl::StatusOr<wan::v1::Shape> ParseShape(std::string_view text) {
  const std::vector<int32_t> dimensions = ParseDimensions(text);
  if (dimensions.size() != 3) {
    return Expected("WIDTHxHEIGHTxFRAMES, for example 1280x704x121", text);
  }
  wan::v1::Shape shape;
  shape.set_width(dimensions[0]);
  shape.set_height(dimensions[1]);
  shape.set_num_frames(dimensions[2]);
  return shape;
}

absl::StatusOr<std::vector<double>> ParseGuidance(std::string_view text) {
  std::vector<double> scales;
  for (absl::string_view part : absl::StrSplit(View(text), ',')) {
    absl::StatusOr<double> scale = ParseNumber({part.data(), part.size()});
    if (!scale.ok() || scales.size() == 2) return Expected("a number or LOW,HIGH", text);
    scales.push_back(*scale);
  }
  return scales;
}

absl::StatusOr<wan::v1::Solver> ParseSolver(std::string_view text) {
  return ChooseWord<wan::v1::Solver>(text);
}

absl::StatusOr<wan::v1::Quality> ParseQuality(std::string_view text) {
  return ChooseWord<wan::v1::Quality>(text);
}

absl::StatusOr<wan::v1::VaePrecision> ParseVaePrecision(std::string_view text) {
  return ChooseWord<wan::v1::VaePrecision>(text);
}

absl::StatusOr<wan::v1::Decoder> ParseDecoder(std::string_view text) {
  return ChooseWord<wan::v1::Decoder>(text);
}

absl::StatusOr<wan::v1::Resume> ParseResume(std::string_view text) {
  return ChooseWord<wan::v1::Resume>(text);
}

absl::StatusOr<std::string> ParseColor(std::string_view text) {
  constexpr size_t kDigits = 6;
  const std::string_view digits = text.substr(text.starts_with('#') ? 1 : 0);
  if (digits.size() != kDigits ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
    return Expected("a colour as RRGGBB in hexadecimal, for example ffffff", text);
  }
  return absl::StrCat("#", View(digits));
}

absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return Expected("KEY=VALUE", text);
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

absl::StatusOr<wan::v1::LoraScale> ParseLoraScale(std::string_view text) {
  const size_t colon = text.find(':');
  wan::v1::LoraScale lora;
  lora.set_name(std::string(text.substr(0, colon)));
  bool good = !lora.name().empty();
  if (colon != std::string_view::npos) {
    const std::string_view scales = text.substr(colon + 1);
    const size_t slash = scales.find('/');
    const absl::StatusOr<double> first = ParseNumber(scales.substr(0, slash));
    good = good && first.ok();
    if (good && slash == std::string_view::npos) lora.set_scale(*first);
    if (good && slash != std::string_view::npos) {
      const absl::StatusOr<double> low = ParseNumber(scales.substr(slash + 1));
      good = low.ok();
      lora.set_high_scale(*first);
      if (good) lora.set_low_scale(*low);
    }
  }
  if (!good) {
    return Expected("NAME, NAME:SCALE or NAME:HIGH/LOW, for example style:0.8 or fast:1/0.8", text);
  }
  return lora;
}

absl::StatusOr<wan::v1::LoraSource> ParseLoraSource(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const size_t at = key.find('@');
  const bool has_path = equals != std::string_view::npos && equals + 1 < text.size();
  if (key.empty() || at == 0 || at == key.size() - 1 || !has_path) {
    return Expected("NAME=PATH or NAME@EXPERT=PATH", text);
  }
  wan::v1::LoraSource lora;
  lora.set_name(std::string(key.substr(0, at)));
  if (at != std::string_view::npos) lora.set_expert(std::string(key.substr(at + 1)));
  lora.set_path(std::string(text.substr(equals + 1)));
  return lora;
}

absl::StatusOr<wan::v1::LoraSource> ParseLoraSchedule(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return Expected("NAME=SCHEDULE", text);
  const absl::StatusOr<wan::v1::LoraSchedule> schedule =
      wan::ParseLoraSchedule(text.substr(equals + 1));
  if (!schedule.ok()) return schedule.status();
  wan::v1::LoraSource named;
  named.set_name(std::string(text.substr(0, equals)));
  *named.mutable_schedule() = *schedule;
  return named;
}

absl::StatusOr<std::vector<double>> ParseSigmas(std::string_view text) {
  std::vector<double> sigmas;
  for (const absl::string_view part : absl::StrSplit(View(text), ',')) {
    const absl::StatusOr<double> sigma = ParseNumber({part.data(), part.size()});
    if (!sigma.ok()) return Expected("numbers with commas, for example 1,0.75,0.5,0.25", text);
    sigmas.push_back(*sigma);
  }
  return sigmas;
}

absl::StatusOr<wan::v1::OutputKind> ParseArtifactKind(std::string_view text) {
  return ChooseWord<wan::v1::OutputKind>(text);
}

std::string_view ArtifactKindName(wan::v1::OutputKind kind) {
  const std::string_view word = WordOf(kind);
  return word.empty() ? "?" : word;
}

absl::StatusOr<OutputFile> ParseOutputFile(std::string_view text) {
  const size_t dot = text.rfind('.');
  const std::string_view ending = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (const auto kind = ValueOf<wan::v1::OutputKind>(ending)) {
    return OutputFile{*kind, std::string(text)};
  }
  return Expected("a file that ends in .mp4, .mkv or .safetensors", text);
}

absl::StatusOr<wan::v1::JobState> ParseJobState(std::string_view text) {
  return ChooseWord<wan::v1::JobState>(text);
}

absl::StatusOr<std::string> ParseBatchFile(std::string_view text) {
  for (const std::string_view ending : {".txt", ".jsonl", ".csv"}) {
    if (text.ends_with(ending) && text.size() > ending.size()) return std::string(text);
  }
  return Expected("a file that ends in .txt, .jsonl or .csv", text);
}

absl::StatusOr<std::string> ParseJobName(std::string_view text) {
  constexpr std::string_view kPrefix = "jobs/";
  std::string_view id = text;
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  if (id.empty()) return Expected("jobs/ID or ID", text);
  return absl::StrCat(View(kPrefix), View(id));
}

absl::StatusOr<JobOrFile> ParseJobOrFile(std::string_view text) {
  if (!text.starts_with("jobs/") && text.find_first_of("./") != std::string_view::npos) {
    return JobOrFile{std::string(text), true};
  }
  absl::StatusOr<std::string> job = ParseJobName(text);
  if (!job.ok()) return Expected("jobs/ID, ID, or a file, whose name has a '.' or '/'", text);
  return JobOrFile{*std::move(job), false};
}

absl::StatusOr<std::string> ParseServer(std::string_view text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == 0 || colon == std::string_view::npos || !ParseWhole(text.substr(colon + 1), &port) ||
      port < 1 || port > 65535) {
    return Expected("HOST:PORT", text);
  }
  const std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find_first_of(":/[] ") != std::string_view::npos) {
    return Expected("HOST:PORT, with brackets around an IPv6 address", text);
  }
  return std::string(text);
}

absl::StatusOr<ReportFormat> ParseReportFormat(std::string_view text) {
  static constexpr Choice<ReportFormat> kChoices[] = {{"table", ReportFormat::kTable},
                                                      {"text", ReportFormat::kText},
                                                      {"markdown", ReportFormat::kMarkdown},
                                                      {"json", ReportFormat::kJson},
                                                      {"html", ReportFormat::kHtml}};
  return Choose<ReportFormat>(text, kChoices);
}

absl::StatusOr<std::pair<std::string, std::string>> ParseNamedServer(std::string_view text) {
  absl::StatusOr<std::pair<std::string, std::string>> named = ParseLabel(text);
  if (!named.ok()) return Expected("NAME=HOST:PORT", text);
  absl::StatusOr<std::string> server = ParseServer(named->second);
  if (!server.ok()) return Expected("NAME=HOST:PORT", text);
  return std::pair(named->first, *std::move(server));
}

absl::StatusOr<bool> ParseBool(std::string_view text) { return Choose<bool>(text, kTruths); }

absl::StatusOr<bool> ParseJsonOrTable(std::string_view text) {
  return Choose<bool>(text, kFormats);
}

absl::StatusOr<std::string> ParseNameBeforePath(std::string_view text) {
  if (text.find('=') != std::string_view::npos) {
    return Expected("a NAME without '=', with PATH as the next argument", text);
  }
  return ParseNotEmpty(text);
}

absl::StatusOr<std::string> ParseNotEmpty(std::string_view text) {
  if (text.empty()) return Expected("some text", text);
  return std::string(text);
}

absl::StatusOr<std::string> ParseText(std::string_view text) { return std::string(text); }

}  // namespace wan::client
