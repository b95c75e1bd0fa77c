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
  // The server to call, "HOST:PORT".
  std::string server;
  // Whether to print every message of the server on stdout as a line of JSON.
  bool json = false;
  // Whether to use TLS; each of the following PEM files implies TLS (empty: not given).
  bool tls = false;
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  // The file with the token; empty: the token of the environment is used, if there is one.
  std::string token_file;
  bool allow_plaintext_token = false;
  // Maximum time that the whole command may take.
  absl::Duration timeout = absl::InfiniteDuration();
};

// The request that the command line describes. Fields whose flags were not given are unset.
struct RequestFlags {
  wan::v1::GenerationRequest request;
  // The file whose text is the prompt; empty: the prompt is in `request`.
  std::string prompt_path;
  // The file whose bytes go into request.image; empty: no image.
  std::string image_path;
  // The latents for the request's fields of these names: an earlier job, or the bytes of a file.
  std::optional<JobOrFile> initial_latents;
  std::optional<JobOrFile> latents;
  // The length from which FillInDefaults computes request.num_frames.
  std::optional<double> seconds;
  // The time from now until request.deadline.
  std::optional<absl::Duration> deadline;
};

struct GenerateCommand {
  RequestFlags flags;
  // If the list is empty, `generate` writes an MP4 file named after the prompt and the job
  // (DefaultOutput).
  std::vector<OutputFile> outputs;
  // The folder to which previews are written; empty: no previews are written.
  std::string preview_dir;
  // How many videos to make, one after the other (batch.h).
  int32_t count = 1;
};
struct SubmitCommand {
  RequestFlags flags;
  // How many jobs to create for each request (batch.h).
  int32_t count = 1;
  // The file with a request in each line or row (batch.h); empty: `flags` are the only request.
  std::string from;
};
struct QuoteCommand {
  RequestFlags flags;
  std::vector<OutputFile> outputs;
  // --preview-interval is accepted as in generate, but has no effect.
  std::string preview_dir;
};
// The command `calibrate`; its request has `calibrate` set.
struct CalibrateCommand {
  RequestFlags flags;
  std::string output = "step_ratios.json";
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
  // If the list is empty, all artifacts are downloaded, to files named after the prompt and the job
  // (DefaultOutput).
  std::vector<OutputFile> outputs;
};
// Chooses format, content and destination of reports about measured jobs.
struct ReportFlags {
  // If `format` is not set, the ending of `output` decides; without `output`, the format is table.
  std::optional<ReportFormat> format;
  // The file or folder to which the report is written; empty: stdout.
  std::string output;
  // A file of `wan_bench ceilings`; empty: use the stored ceilings of the devices on which the jobs
  // ran.
  std::string ceilings;
  // The reports to make; empty: all four.
  std::set<reports::ReportPart> parts;
};
struct ReportCommand {
  // The jobs to report, in the order of the rows.
  std::vector<std::string> jobs;
  // JSON files that `bench` or `report` has written; the runs in them are added to the report.
  std::vector<std::string> from;
  ReportFlags flags;
};
// Says with which settings `bench` runs a case.
enum class BenchMode { kOptimized, kOriginal, kBoth };
struct BenchCommand {
  // "demo", "seeds", or the path of a YAML file.
  std::string cases;
  // The folder to which the reports are written.
  std::string output;
  BenchMode mode = BenchMode::kOptimized;
  int32_t num_runs = 1;
  // How often each case and setting runs before it is measured; these runs are not reported.
  int32_t warm_up = 0;
  // Names of the cases to run; empty: run all cases.
  std::vector<std::string> only;
  // The model that replaces the models of the cases; empty: the cases decide.
  std::string model;
  // The server on which `original` runs; empty: the same server.
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
  // The files that the job was made with and that the server does not keep; empty: the job had no
  // such files.
  std::string image_path;
  std::string initial_latents_path;
  std::string latents_path;
};
struct CompareCommand {
  // The two videos, each "jobs/ID" or the path of a file.
  JobOrFile a;
  JobOrFile b;
  // Files and folders to write; FormatOfPath, or the ending ".csv", decides the format.
  std::vector<std::string> outputs;
  // The MP4 file to write; empty: no file is written.
  std::string side_by_side;
};
struct ListModelsCommand {};
struct LoadModelCommand {
  wan::v1::LoadModelRequest request;
  // Names and schedules for LoRAs of the request.
  std::vector<wan::v1::LoraSource> schedules;
};
struct DownloadModelCommand {
  // The name of a list.
  std::string name;
  // The folder for the checkpoint; empty: a folder in the user's data folder.
  std::string folder;
  // The address of the repositories; empty: the publisher's.
  std::string base;
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
  // The time between two refreshes of the screen.
  absl::Duration interval = absl::Seconds(1);
};
struct HealthCommand {
  // Name of a service for grpc.health.v1; empty: the whole server.
  std::string service;
};
struct UsageCommand {
  // The principal to ask about; empty: the caller.
  std::string principal;
};
struct DrainCommand {
  wan::v1::DrainRequest request;
};
struct UndrainCommand {};

using Command =
    std::variant<GenerateCommand, SubmitCommand, QuoteCommand, CalibrateCommand, WatchCommand,
                 GetCommand, ListCommand, CancelCommand, DeleteCommand, DownloadCommand,
                 ReportCommand, BenchCommand, ReceiptCommand, ReplayCommand, CompareCommand,
                 ListModelsCommand, LoadModelCommand, DownloadModelCommand, UnloadModelCommand,
                 WarmupModelCommand, DevicesCommand, InfoCommand, TopCommand, HealthCommand,
                 UsageCommand, DrainCommand, UndrainCommand>;

struct Options {
  GlobalFlags global;
  Command command;
};

}  // namespace wan::client
