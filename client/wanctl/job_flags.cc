// Registers the command list, and the commands about an existing job.
#include <string>
#include <string_view>
#include <utility>

#include "client/wanctl/command_registry.h"
#include "client/wanctl/report_files.h"

namespace wan::client {
namespace {

constexpr char kDownloadFooter[] =
    R"(The file's ending selects the artifact, as for generate. The file appears once it is complete and its
SHA-256 is right; an interrupted download continues where it stopped.

Examples:
  wanctl download jobs/4f1c9a52d07be6831a2c --output cat.mp4
  wanctl download 4f1c9a52d07be6831a2c --output cat.mp4 cat.mkv)";

constexpr char kReplayFooter[] =
    R"(The exit code is 0 if every file has the same bits, and 7 if not; then each difference between the two
servers, their models and libraries that may explain it is named. The job lives as long as the call.

Examples:
  wanctl replay 4f1c9a52d07be6831a2c
  wanctl replay 4f1c9a52d07be6831a2c --image cat.png)";

constexpr char kCompareFooter[] =
    R"(A and B are jobs that have completed, or files; both must have one size, number of frames and frame rate.
Of jobs the lossless .mkv is compared if both have one, else the .mp4. The endings of --output: .html (with
plots), .md, .txt, .json, .csv (a line for each frame); a folder gets all of them.

Examples:
  wanctl compare 4f1c9a52d07be6831a2c 88d1c07be6831a2c4f1c
  wanctl compare a.mkv b.mkv --output ab.html ab.csv --side-by-side ab.mp4)";

absl::StatusOr<std::string> ParseMp4(std::string_view text) {
  if (text.ends_with(".mp4")) return std::string(text);
  return absl::InvalidArgumentError("expects a file that ends in .mp4, not '" + std::string(text) +
                                    "'");
}

absl::StatusOr<std::string> ParseComparisonOutput(std::string_view text) {
  std::string path(text);
  if (IsFolder(path) || FormatOfPath(path) || path.ends_with(".csv")) return path;
  return absl::InvalidArgumentError(
      "expects a file that ends in .html, .md, .txt, .json or .csv, or a folder such as DIR/, not "
      "'" +
      path + "'");
}

void AddCompare(CommandRegistry& registry) {
  const auto compare = registry.Add<CompareCommand>(
      {"compare", "Measure how near two videos are: PSNR, SSIM, MS-SSIM", kCompareFooter});
  constexpr char kVideo[] = "jobs/ID, ID alone, or a file, which has a '.' or '/' in its name";
  AddValue<JobOrFile>(compare.app, "A", "", kVideo, ParseJobOrFile, compare.command.a)->required();
  AddValue<JobOrFile>(compare.app, "B", "", kVideo, ParseJobOrFile, compare.command.b)->required();
  Several(AddValue<std::string>(
      compare.app, "--output", "FILE|DIR/",
      "File to write besides the table, or a folder for all of them; repeatable",
      ParseComparisonOutput, [&outputs = compare.command.outputs](std::string path) {
        outputs.push_back(std::move(path));
      }));
  AddValue<std::string>(compare.app, "--side-by-side", "FILE",
                        "MP4 file to write: A, B, and their amplified difference", ParseMp4,
                        compare.command.side_by_side);
}

// Adds a command whose only argument is a job.
template <typename C>
void AddJobCommand(CommandRegistry& registry, const CommandHelp& help) {
  const auto added = registry.Add<C>(help);
  AddJob(added.app, added.command.job);
}

}  // namespace

void RegisterJobCommands(CommandRegistry& registry) {
  const auto watch = registry.Add<WatchCommand>(
      {"watch", "Follow a job to its end; the exit code says how it ended"});
  AddJob(watch.app, watch.command.job);
  AddValue<int64_t>(watch.app, "--after", "N", "Show only events after this sequence number",
                    ParseInt64, watch.command.after);
  AddPreviewDir(watch.app, watch.command.preview_dir);

  AddJobCommand<GetCommand>(registry, {"get", "Show everything about a job"});

  const auto list = registry.Add<ListCommand>({"list", "List jobs, newest first"});
  Repeatable(AddValue<wan::v1::JobState>(
      list.app, "--state", Alternatives<wan::v1::JobState>(),
      "List only jobs in this state; repeatable", ParseJobState,
      [&states = list.command.states](wan::v1::JobState state) { states.push_back(state); }));
  AddValue<std::string>(
      list.app, "--filter", "TEXT",
      "List only jobs that this filter accepts, such as 'labels.team = video'; see docs/use/api.md",
      ParseNotEmpty, list.command.filter);
  AddValue<std::string>(list.app, "--order-by", "FIELD",
                        "create_time, end_time or priority, then 'desc' for the greatest first",
                        ParseNotEmpty, list.command.order_by);
  AddValue<int32_t>(list.app, "--limit", "N", "List at most this many jobs (default: 50)",
                    ParseCount, list.command.limit);

  AddJobCommand<CancelCommand>(registry, {"cancel", "End a job"});
  AddJobCommand<DeleteCommand>(registry, {"delete", "Remove a job that has ended, with its files"});

  const auto download =
      registry.Add<DownloadCommand>({"download", "Download the files of a job", kDownloadFooter});
  AddJob(download.app, download.command.job);
  AddOutputs(download.app, download.command.outputs,
             "File to write, .mp4, .mkv or .safetensors (default: all of the job's files, named "
             "after the prompt and the job); repeatable");

  AddJobCommand<ReceiptCommand>(
      registry,
      {"receipt", "Show what a job's video was made from: request, server, files and digests"});

  const auto replay = registry.Add<ReplayCommand>(
      {"replay", "Make a job's video again, and say whether it is the same", kReplayFooter});
  AddJob(replay.app, replay.command.job);
  AddValue<std::string>(replay.app, "--image", "FILE", "The image that the job was made with",
                        ParseNotEmpty, replay.command.image_path);
  AddValue<std::string>(replay.app, "--initial-latents", "FILE",
                        "The initial latents that the job was made with, unless a job has them",
                        ParseNotEmpty, replay.command.initial_latents_path);
  AddValue<std::string>(replay.app, "--latents", "FILE",
                        "The latents that the job was made with, unless a job has them",
                        ParseNotEmpty, replay.command.latents_path);

  AddCompare(registry);
}

}  // namespace wan::client
