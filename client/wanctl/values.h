// Parses the values of wanctl's flags. It checks their syntax only; the server decides what a model
// accepts. An error is INVALID_ARGUMENT, and its message continues a sentence that begins with the
// flag's name: "expects HOST:PORT, not 'gpu'". All functions are pure.
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

// A file to write, and the kind of artifact that its ending selects.
struct OutputFile {
  wan::v1::OutputKind kind;
  std::string path;

  friend bool operator==(const OutputFile&, const OutputFile&) = default;
};

// A decimal whole number, with or without a sign.
absl::StatusOr<int32_t> ParseInt32(std::string_view text);
absl::StatusOr<int64_t> ParseInt64(std::string_view text);
// A seed that the server does not draw: a whole number from 0.
absl::StatusOr<int64_t> ParseFixedSeed(std::string_view text);
// A decimal number that is finite.
absl::StatusOr<double> ParseNumber(std::string_view text);
// A number above 0.
absl::StatusOr<absl::Duration> ParseSeconds(std::string_view text);
// A number from 0.
absl::StatusOr<absl::Duration> ParseSecondsOrZero(std::string_view text);
// A whole number above 0.
absl::StatusOr<int32_t> ParseCount(std::string_view text);
// A whole number from 0.
absl::StatusOr<int32_t> ParseCountOrZero(std::string_view text);

// "WxH" or "W*H": width and height; num_frames stays 0.
absl::StatusOr<wan::v1::Shape> ParseSize(std::string_view text);
// "WxHxFRAMES", also with '*'.
absl::StatusOr<wan::v1::Shape> ParseShape(std::string_view text);
// "G" or "LOW,HIGH".
absl::StatusOr<std::vector<double>> ParseGuidance(std::string_view text);
// A word of the enum (proto/enum_words.h), for example "dpm++".
absl::StatusOr<wan::v1::Solver> ParseSolver(std::string_view text);
// The same, for example "fp16".
absl::StatusOr<wan::v1::VaePrecision> ParseVaePrecision(std::string_view text);
// "#RRGGBB", or "RRGGBB", because a shell takes '#' for a comment; returns the first form.
absl::StatusOr<std::string> ParseColor(std::string_view text);
// "KEY=VALUE"; the value may be empty and may hold '='.
absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(std::string_view text);
// "NAME" or "NAME:SCALE".
absl::StatusOr<wan::v1::LoraScale> ParseLoraScale(std::string_view text);
// "NAME=PATH" or "NAME@EXPERT=PATH".
absl::StatusOr<wan::v1::LoraSource> ParseLoraSource(std::string_view text);
// The same, for example "mp4".
absl::StatusOr<wan::v1::OutputKind> ParseArtifactKind(std::string_view text);
// The inverse of ParseArtifactKind; "?" for a kind that this program does not know.
std::string_view ArtifactKindName(wan::v1::OutputKind kind);
// A path that ends in ".mp4", ".mkv" or ".safetensors".
absl::StatusOr<OutputFile> ParseOutputFile(std::string_view text);
// The same, for example "queued".
absl::StatusOr<wan::v1::JobState> ParseJobState(std::string_view text);
// "jobs/ID" or "ID"; returns "jobs/ID".
absl::StatusOr<std::string> ParseJobName(std::string_view text);
// "NAME=HOST:PORT"; the name and the server.
absl::StatusOr<std::pair<std::string, std::string>> ParseNamedServer(std::string_view text);
// "HOST:PORT", "[IPV6]:PORT".
absl::StatusOr<std::string> ParseServer(std::string_view text);
enum class ReportFormat { kTable, kText, kMarkdown, kJson, kHtml };
// "table", "text", "markdown", "json", "html".
absl::StatusOr<ReportFormat> ParseReportFormat(std::string_view text);
// "true", "false".
absl::StatusOr<bool> ParseBool(std::string_view text);
// "json" is true, "table" is false.
absl::StatusOr<bool> ParseJsonOrTable(std::string_view text);
// Any text that is not empty.
absl::StatusOr<std::string> ParseNotEmpty(std::string_view text);
// A model's name. Its path is a separate argument here; "NAME=PATH" is the form of wanserve's
// --model.
absl::StatusOr<std::string> ParseNameBeforePath(std::string_view text);
// Any text.
absl::StatusOr<std::string> ParseText(std::string_view text);

}  // namespace wan::client
