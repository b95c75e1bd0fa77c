// Parses the values of wanctl's flags. Checks only the syntax; the server decides what a model
// accepts. All errors are INVALID_ARGUMENT, with a message that continues a sentence that begins
// with the flag's name: "expects HOST:PORT, not 'gpu'". All functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

// A file to write, and the kind of artifact that the file's ending selects.
struct OutputFile {
  wan::v1::OutputKind kind;
  std::string path;

  friend bool operator==(const OutputFile&, const OutputFile&) = default;
};

// ParseInt32 and ParseInt64 accept a decimal whole number, with or without a sign.
absl::StatusOr<int32_t> ParseInt32(std::string_view text);
absl::StatusOr<int64_t> ParseInt64(std::string_view text);
// Accepts a whole number from 0 on, so that the server does not draw the seed.
absl::StatusOr<int64_t> ParseFixedSeed(std::string_view text);
// Accepts a finite decimal number.
absl::StatusOr<double> ParseNumber(std::string_view text);
// Accepts a number above 0.
absl::StatusOr<absl::Duration> ParseSeconds(std::string_view text);
// Accepts a number from 0 on.
absl::StatusOr<absl::Duration> ParseSecondsOrZero(std::string_view text);
// Accepts a number above 0, of at most 3600: the seconds that a video lasts.
absl::StatusOr<double> ParseLength(std::string_view text);
// Accepts a whole number above 0.
absl::StatusOr<int32_t> ParseCount(std::string_view text);
// Accepts a whole number from 0 on.
absl::StatusOr<int32_t> ParseCountOrZero(std::string_view text);

// Accepts "WxH" or "W*H"; leaves num_frames at 0.
absl::StatusOr<wan::v1::Shape> ParseSize(std::string_view text);
// Accepts "WxHxFRAMES", also with '*' in place of 'x'.
absl::StatusOr<wan::v1::Shape> ParseShape(std::string_view text);
// Accepts "G", or "LOW,HIGH" for a model with two experts.
absl::StatusOr<std::vector<double>> ParseGuidance(std::string_view text);
// Accepts a word of the enum (proto/enum_words.h), for example "dpm++".
absl::StatusOr<wan::v1::Solver> ParseSolver(std::string_view text);
// Accepts a word of the enum, for example "high".
absl::StatusOr<wan::v1::Quality> ParseQuality(std::string_view text);
// Accepts a word of the enum VaePrecision, for example "fp16".
absl::StatusOr<wan::v1::VaePrecision> ParseVaePrecision(std::string_view text);
// Accepts "full" or "tiny".
absl::StatusOr<wan::v1::Decoder> ParseDecoder(std::string_view text);
// Accepts "prefer" or "require".
absl::StatusOr<wan::v1::Resume> ParseResume(std::string_view text);
// Accepts "#RRGGBB", and "RRGGBB" because '#' begins a comment in shells; returns the form with
// '#'.
absl::StatusOr<std::string> ParseColor(std::string_view text);
// Accepts "KEY=VALUE"; the value may be empty and may contain '='.
absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(std::string_view text);
// Accepts "NAME", "NAME:SCALE", or "NAME:HIGH/LOW" with a scale for each expert.
absl::StatusOr<wan::v1::LoraScale> ParseLoraScale(std::string_view text);
// Accepts "NAME=PATH" or "NAME@EXPERT=PATH".
absl::StatusOr<wan::v1::LoraSource> ParseLoraSource(std::string_view text);

// "NAME=SCHEDULE" (proto/lora_schedule_text.h); only name and schedule of the result are set.
absl::StatusOr<wan::v1::LoraSource> ParseLoraSchedule(std::string_view text);

// Accepts numbers separated by commas.
absl::StatusOr<std::vector<double>> ParseSigmas(std::string_view text);
// Accepts a word of the enum OutputKind, for example "mp4".
absl::StatusOr<wan::v1::OutputKind> ParseArtifactKind(std::string_view text);
// The inverse of ParseArtifactKind; returns "?" for unknown kinds.
std::string_view ArtifactKindName(wan::v1::OutputKind kind);
// Accepts a path that ends in ".mp4", ".mkv" or ".safetensors".
absl::StatusOr<OutputFile> ParseOutputFile(std::string_view text);
// Accepts a word of the enum JobState, for example "queued".
absl::StatusOr<wan::v1::JobState> ParseJobState(std::string_view text);
// The name that stands for the newest job that the caller may see, until wanctl has asked the
// server for the real one.
constexpr char kLastJob[] = "jobs/last";
// Accepts a path that ends in ".txt", ".jsonl" or ".csv".
absl::StatusOr<std::string> ParseBatchFile(std::string_view text);
// Accepts "jobs/ID" or "ID"; returns "jobs/ID". Accepts "last" as well, which becomes kLastJob.
absl::StatusOr<std::string> ParseJobName(std::string_view text);
// A job, or a file on this machine.
struct JobOrFile {
  // "jobs/ID", or the file's path.
  std::string name;
  bool file = false;
};
// Accepts "jobs/ID", "ID", or the path of a file, which has a '.' or '/' in it.
absl::StatusOr<JobOrFile> ParseJobOrFile(std::string_view text);
// Accepts "NAME=HOST:PORT"; returns name and server.
absl::StatusOr<std::pair<std::string, std::string>> ParseNamedServer(std::string_view text);
// Accepts "HOST:PORT" or "[IPV6]:PORT".
absl::StatusOr<std::string> ParseServer(std::string_view text);
enum class ReportFormat { kTable, kText, kMarkdown, kJson, kHtml };
// Accepts "table", "text", "markdown", "json" or "html".
absl::StatusOr<ReportFormat> ParseReportFormat(std::string_view text);
// Accepts "true" or "false".
absl::StatusOr<bool> ParseBool(std::string_view text);
// Accepts "json", which gives true, or "table", which gives false.
absl::StatusOr<bool> ParseJsonOrTable(std::string_view text);
// Accepts any text that is not empty.
absl::StatusOr<std::string> ParseNotEmpty(std::string_view text);
// Accepts the name of a model, but not "NAME=PATH" (the form of wanserve's --model), because the
// path is a separate argument here.
absl::StatusOr<std::string> ParseNameBeforePath(std::string_view text);
// Accepts any text, even an empty one.
absl::StatusOr<std::string> ParseText(std::string_view text);

}  // namespace wan::client
