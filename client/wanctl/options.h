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
  // Print every message of the server as one line of JSON on stdout.
  bool json = false;
  // Use TLS; any of the three files below implies it. Paths of PEM files; empty: none.
  bool tls = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  // Path of the token's file; empty: the environment's token, if any.
  std::string token_file;
  bool allow_plaintext_token = false;
  // Limit of the whole command.
  absl::Duration timeout = absl::InfiniteDuration();
};

// The request from the command line. Fields without a flag stay unset.
struct RequestFlags {
  wan::v1::GenerationRequest request;
  // The file to read into request.image; empty: no image.
  std::string image_path;
  // The time from now to request.deadline.
  std::optional<absl::Duration> deadline;
};

struct GenerateCommand {
  RequestFlags flags;
  // Empty: an MP4 file that is named after the prompt and the job.
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
  // As for generate; unused here.
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
  // Empty: every artifact, in files that are named after the prompt and the job.
  std::vector<OutputFile> outputs;
};
// How reports of measured jobs are written.
struct ReportFlags {
  // Unset: by the ending of `output`, otherwise tables.
  std::optional<ReportFormat> format;
  // The file to write; empty: stdout.
  std::string output;
  // A file of `wan_bench ceilings`; empty: the stored ceilings of the jobs' devices.
  std::string ceilings;
  // Empty: all four reports.
  std::set<reports::ReportPart> parts;
};
struct ReportCommand {
  // In the order of the tables' rows.
  std::vector<std::string> jobs;
  // Files of `bench`, or JSON of this command, whose runs are added to the report.
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
  // Warm-up runs of each case and setting, which are not reported.
  int32_t warm_up = 0;
  // Names of the cases to run; empty: all.
  std::vector<std::string> only;
  // Replaces the cases' own model.
  std::string model;
  // The server for `original`; empty: the same server.
  std::string original_server;
  // Names of options, and servers whose settings differ by them.
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
