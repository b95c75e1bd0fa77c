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
  // Whether every message of the server is printed as one line of JSON on stdout.
  bool json = false;
  // Speak TLS; any of the three files means so, too. The names of PEM files, empty: none.
  bool tls = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  // The name of the file that has the token; empty: the environment's, if there is one.
  std::string token_file;
  bool allow_plaintext_token = false;
  // Limit of the whole command.
  absl::Duration timeout = absl::InfiniteDuration();
};

// The request as the command line gives it. Flags that were not given stay unset.
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
  // As of generate, and without a meaning here.
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
// What becomes of measured jobs.
struct ReportFlags {
  // Unset: as the ending of `output` says, otherwise tables.
  std::optional<ReportFormat> format;
  // The file to write; empty: stdout.
  std::string output;
  // What `wan_bench ceilings` wrote; empty: what is kept for the jobs' devices.
  std::string ceilings;
  // Empty: all four.
  std::set<reports::ReportPart> parts;
};
struct ReportCommand {
  // In the order of the tables' rows.
  std::vector<std::string> jobs;
  // Files of `bench`, or of this command's JSON, whose runs are reported besides.
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
  // Runs of each case and setting that are not reported.
  int32_t warm_up = 0;
  // Names of the cases to run; empty: all.
  std::vector<std::string> only;
  // Replaces the cases' own model.
  std::string model;
  // Where `original` runs; empty: on the same server.
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
  // Between two looks at the server.
  absl::Duration interval = absl::Seconds(1);
};
struct HealthCommand {
  // Of grpc.health.v1; empty: the whole server.
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
