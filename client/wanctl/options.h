// The parsed command line of wanctl.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/reports/report.h"
#include "client/wanctl/values.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

struct GlobalFlags {
  // "HOST:PORT".
  std::string server;
  // Print every message of the server on stdout as a line of JSON.
  bool json = false;
  // Use TLS; any of the following PEM files (empty: none) implies it.
  bool tls = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  // File of the token; empty: use the environment's token, if any.
  std::string token_file;
  bool allow_plaintext_token = false;
  // Most time for the whole command.
  absl::Duration timeout = absl::InfiniteDuration();
};

// The request from the command line. Fields whose flags were not given are unset.
struct RequestFlags {
  wan::v1::GenerationRequest request;
  // The file to read into request.image; empty: no image.
  std::string image_path;
  // The time from now to request.deadline.
  std::optional<absl::Duration> deadline;
};

struct GenerateCommand {
  RequestFlags flags;
  // Empty: an MP4 file named after the prompt and the job (DefaultOutput).
  std::vector<OutputFile> outputs;
  // The folder for previews; empty: no previews are written.
  std::string preview_dir;
};
struct SubmitCommand {
  RequestFlags flags;
};
struct QuoteCommand {
  RequestFlags flags;
  std::vector<OutputFile> outputs;
  // Accepted like in generate, but unused.
  std::string preview_dir;
};
struct WatchCommand {
  std::string job;
  int64_t after = 0;
  std::string preview_dir;
};
struct GetCommand {
  std::string job;
};
struct ListCommand {
  std::vector<wan::v1::JobState> states;
  std::string filter;
  std::string order_by;
  int32_t limit = 50;
};
struct CancelCommand {
  std::string job;
};
struct DeleteCommand {
  std::string job;
};
struct DownloadCommand {
  std::string job;
  // Empty: every artifact, in files named after the prompt and the job (DefaultOutput).
  std::vector<OutputFile> outputs;
};
// How reports of measured jobs are written.
struct ReportFlags {
  // Unset: from the ending of `output`, or else tables.
  std::optional<ReportFormat> format;
  // The file or folder to write; empty: stdout.
  std::string output;
  // A file of `wan_bench ceilings`; empty: use the stored ceilings of the jobs' devices.
  std::string ceilings;
  // Empty: all four reports.
  std::set<reports::ReportPart> parts;
};
struct ReportCommand {
  // The jobs, in the order of the rows.
  std::vector<std::string> jobs;
  // JSON files of `bench` or `report`, whose runs are added to the report.
  std::vector<std::string> from;
  ReportFlags flags;
};
// The settings with which `bench` runs a case.
enum class BenchMode { kOptimized, kOriginal, kBoth };
struct BenchCommand {
  // "demo", "seeds", or a YAML file.
  std::string cases;
  // The folder for the reports.
  std::string output;
  BenchMode mode = BenchMode::kOptimized;
  int32_t num_runs = 1;
  // Number of warm-up runs of each case and setting, which are not reported.
  int32_t warm_up = 0;
  // Names of the cases to run; empty: all.
  std::vector<std::string> only;
  // Model to use instead of the cases' models; empty: theirs.
  std::string model;
  // The server for `original`; empty: the same server.
  std::string original_server;
  // Pairs of an option's name and a server whose settings differ by it.
  std::vector<std::pair<std::string, std::string>> compare;
  std::vector<std::pair<std::string, std::string>> labels;
  std::string ceilings;
};
struct ReceiptCommand {
  std::string job;
};
struct ReplayCommand {
  std::string job;
  // The file of the job's image; empty: none.
  std::string image_path;
};
struct ListModelsCommand {};
struct LoadModelCommand {
  wan::v1::LoadModelRequest request;
};
struct UnloadModelCommand {
  wan::v1::UnloadModelRequest request;
};
struct WarmupModelCommand {
  wan::v1::WarmupModelRequest request;
};
struct DevicesCommand {
  bool watch = false;
};
struct InfoCommand {};
struct TopCommand {
  // Time between two refreshes.
  absl::Duration interval = absl::Seconds(1);
};
struct HealthCommand {
  // Service name of grpc.health.v1; empty: the whole server.
  std::string service;
};
struct UsageCommand {
  // Empty: the caller.
  std::string principal;
};
struct DrainCommand {
  wan::v1::DrainRequest request;
};
struct UndrainCommand {};

using Command =
    std::variant<GenerateCommand, SubmitCommand, QuoteCommand, WatchCommand, GetCommand,
                 ListCommand, CancelCommand, DeleteCommand, DownloadCommand, ReportCommand,
                 BenchCommand, ReceiptCommand, ReplayCommand, ListModelsCommand, LoadModelCommand,
                 UnloadModelCommand, WarmupModelCommand, DevicesCommand, InfoCommand, TopCommand,
                 HealthCommand, UsageCommand, DrainCommand, UndrainCommand>;

struct Options {
  GlobalFlags global;
  Command command;
};

}  // namespace wan::client
