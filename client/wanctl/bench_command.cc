#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/compare/frame_strip.h"
#include "client/compare/video_comparison.h"
#include "client/error.h"
#include "client/model_client.h"
#include "client/reports/render.h"
#include "client/reports/report.h"
#include "client/reports/sections.h"
#include "client/telemetry_client.h"
#include "client/wanctl/bench_cases.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/job_video.h"
#include "client/wanctl/latents.h"
#include "client/wanctl/report_files.h"
#include "client/wanctl/request.h"
#include "client/wanctl/scratch_folder.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

using wan::v1::GenerationRequest;

absl::StatusOr<std::vector<BenchCase>> CasesOf(const BenchCommand& command) {
  std::string yaml;
  if (const char* const known = DefaultBenchCases(command.cases)) {
    yaml = known;
  } else {
    std::optional<std::string> read = reports::ReadFile(command.cases);
    if (!read.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("CASES is '", command.cases,
                       "', which is neither demo nor seeds nor a file that can be read"));
    }
    yaml = *std::move(read);
  }
  absl::StatusOr<std::vector<BenchCase>> cases = ParseBenchCases(yaml, command.cases);
  if (!cases.ok()) return cases;
  for (const BenchCase& one : *cases) {
    // Check the images before the first job.
    if (!one.image_path.empty()) {
      const absl::StatusOr<std::string> image = ReadImage(one.image_path);
      if (!image.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(command.cases, ": ", one.name, ": image ", image.status().message()));
      }
    }
    for (const BenchVariant& option : one.options) {
      const bool taken =
          std::any_of(command.compare.begin(), command.compare.end(),
                      [&](const auto& server) { return server.first == option.name; });
      if (!taken) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--compare gives '", option.name, "', which is an option of case '",
                       one.name, "', too; every option needs a name of its own"));
    }
  }
  if (command.only.empty()) return cases;
  for (const std::string& name : command.only) {
    if (std::none_of(cases->begin(), cases->end(),
                     [&](const BenchCase& one) { return one.name == name; })) {
      std::vector<std::string> names;
      for (const BenchCase& one : *cases) names.push_back(one.name);
      return absl::InvalidArgumentError(
          absl::StrCat("--only names '", name, "'; the cases are ", absl::StrJoin(names, ", ")));
    }
  }
  std::erase_if(*cases, [&](const BenchCase& one) {
    return std::find(command.only.begin(), command.only.end(), one.name) == command.only.end();
  });
  return cases;
}

// A server on which variants run.
struct Server {
  const Connection* connection = nullptr;
  const VideoClient* videos = nullptr;
};

// A request, and the server on which it runs.
struct Variant {
  // The variant's name; empty for the case itself.
  std::string name;
  GenerationRequest request;
  Server server;
  // Whether the variant runs before the case's own request, and the model is loaded again before
  // each run.
  bool cold = false;
};

// The result of a run.
struct Result {
  // The latents, as a safetensors file; empty if the run made no latents.
  std::string latents;
  // The digest of the MP4 file; empty if the run made no MP4 file.
  std::string video_sha256;
  // The path of the MP4 file; empty if there is none, or it could not be downloaded.
  std::string video;
};

// The results with which the runs of a case are compared.
struct CaseResults {
  // The result of the case's first run without a variant; empty until that run has ended.
  Result own;
  // The results of cold variants, which run earlier; each has the index of its run in runs_.
  std::vector<std::pair<size_t, Result>> early;
};

// Runs cases one after the other and keeps their results.
class Bench {
 public:
  Bench(Session& session, const BenchCommand& command)
      : session_(session), command_(command), videos_(session.Videos()) {}

  // Connects to the other servers, so that the benchmark fails at its start if one does not answer.
  absl::Status Connect() {
    if (!command_.original_server.empty()) {
      original_ = Open(command_.original_server);
      if (absl::Status status = Ask(original_, "--original-server"); !status.ok()) return status;
    }
    for (const auto& [name, server] : command_.compare) {
      options_.emplace_back(name, Open(server));
      absl::Status status = Ask(options_.back().second, absl::StrCat("--compare '", name, "'"));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Runs a case with all of its variants. Returns false if the user has stopped the benchmark.
  bool RunCase(const BenchCase& one) {
    CaseResults results;
    std::set<const VideoClient*> warm;
    for (const Variant& variant : VariantsOf(one)) {
      const VideoClient* const videos = variant.server.videos;
      const int last = command_.num_runs;
      for (int run = variant.cold ? 1 : 1 - command_.warm_up; run <= last; ++run) {
        const std::string name = absl::StrCat(
            one.name, variant.name.empty() ? "" : absl::StrCat(" (", variant.name, ")"),
            run < 1 ? ", warm-up" : absl::StrCat(", run ", run, " of ", last));
        std::string warmth;
        if (variant.cold) {
          warmth = "no";
        } else if (warm.contains(videos)) {
          warmth = "yes";
        }
        absl::Status status;
        const auto [at, is_first] = used_.emplace(videos, ModelOf(variant));
        if (variant.cold && !is_first) status = LoadAgain(variant);
        if (status.ok()) status = RunOnce(one, variant, run, {name, warmth, last}, results);
        if (session_.stop().stop_requested()) return false;
        if (!status.ok()) {
          failures_.push_back(absl::StrCat(name, ": ", FormatError(status)));
          session_.Say(failures_.back());
          // More runs of a failed case would fail as well.
          break;
        }
        if (run < 1 || variant.cold) warm.insert(videos);
      }
    }
    return true;
  }

  const std::vector<reports::Run>& runs() const { return runs_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  // A server that the command line names in addition to --server.
  struct OtherServer {
    std::unique_ptr<Connection> connection;
    std::unique_ptr<VideoClient> videos;

    Server server() const { return {connection.get(), videos.get()}; }
  };

  OtherServer Open(const std::string& address) {
    ConnectionOptions options = session_.connection().options();
    options.server = address;
    OtherServer server;
    server.connection = std::make_unique<Connection>(std::move(options));
    server.videos = std::make_unique<VideoClient>(*server.connection);
    return server;
  }

  absl::Status Ask(const OtherServer& server, const std::string& flag) const {
    absl::Status status =
        TelemetryClient(*server.connection).GetServerInfo(session_.stop()).status();
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("the server of ", flag, ", ", server.connection->server(),
                                     ", does not answer: ", status.message()));
  }

  std::vector<Variant> VariantsOf(const BenchCase& one) const {
    std::vector<Variant> variants;
    const Server own{&session_.connection(), &videos_};
    if (command_.mode != BenchMode::kOriginal) {
      variants.push_back({"", one.request, own, false});
      for (const BenchVariant& option : one.options) {
        variants.push_back({option.name, option.request, own, option.cold});
      }
      for (const auto& [name, server] : options_) {
        variants.push_back({name, one.request, server.server(), name == "warm_up: false"});
      }
    }
    if (command_.mode != BenchMode::kOptimized) {
      variants.push_back({one.original.name, one.original.request,
                          original_.videos != nullptr ? original_.server() : own,
                          one.original.cold});
    }
    std::stable_partition(variants.begin(), variants.end(),
                          [](const Variant& variant) { return variant.cold; });
    return variants;
  }

  struct RunTitle {
    // The server's name in messages.
    std::string name;
    // The value of kWarmLabel; empty: the label is left out.
    std::string warmth;
    // The number of planned runs of the variant.
    int runs;
  };

  std::string ModelOf(const Variant& variant) const {
    return command_.model.empty() ? variant.request.model() : command_.model;
  }

  // Makes the model's next run a cold one: unloads the model and loads it.
  absl::Status LoadAgain(const Variant& variant) {
    const ModelClient models(*variant.server.connection);
    wan::v1::UnloadModelRequest unload;
    unload.set_name(ModelOf(variant));
    absl::Status status = models.UnloadModel(unload, session_.stop()).status();
    const bool stopped = session_.stop().stop_requested();
    if (status.ok() || stopped) {
      // The server may have unloaded the model even if the call was stopped. Load the model again
      // for other callers.
      wan::v1::LoadModelRequest load;
      load.set_name(ModelOf(variant));
      load.set_wait(!stopped);
      const absl::Status loaded =
          models.LoadModel(load, stopped ? std::stop_token() : session_.stop()).status();
      if (status.ok()) status = loaded;
    }
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat("a cold run needs its model loaded again, which failed: ", status.message()));
  }

  // Runs a variant once; a `run` below 1 is a warm-up.
  absl::Status RunOnce(const BenchCase& one, const Variant& variant, int run, const RunTitle& title,
                       CaseResults& results) {
    RequestFlags flags{.request = variant.request, .image_path = one.image_path};
    flags.request.set_model(ModelOf(variant));
    auto& labels = *flags.request.mutable_labels();
    for (const auto& [key, value] : command_.labels) labels[key] = value;
    labels[reports::kCaseLabel] = one.name;
    if (!variant.name.empty()) labels[reports::kVariantLabel] = variant.name;
    labels[reports::kRunLabel] = absl::StrCat(std::max(run, 0));
    labels[reports::kRunsLabel] = absl::StrCat(title.runs);
    if (!title.warmth.empty()) labels[reports::kWarmLabel] = title.warmth;
    flags.request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
    flags.request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
    absl::StatusOr<GenerationRequest> request = CompleteRequest(flags, session_.Now());
    if (!request.ok()) return request.status();

    const VideoClient& videos = *variant.server.videos;
    absl::StatusOr<wan::v1::Job> job =
        session_.OnceReady([&] { return videos.CreateJob(*request, session_.stop()); });
    if (!job.ok()) return job.status();
    const absl::StatusOr<wan::v1::Event> end = videos.WatchJob(
        job->name(), 0, [](const wan::v1::Event&) {}, session_.stop());
    if (!end.ok()) {
      // If the user has stopped the benchmark, cancel its job.
      if (session_.stop().stop_requested()) videos.CancelJob(job->name()).status().IgnoreError();
      return end.status();
    }
    if (end->has_failed()) return FromProto(end->failed().status());
    if (end->has_cancelled()) {
      return absl::CancelledError(
          absl::StrCat("it was cancelled: ", Printable(end->cancelled().reason())));
    }
    session_.Say(absl::StrFormat("%s: %.2f s", title.name, end->completed().seconds()));
    if (run < 1) return absl::OkStatus();
    absl::StatusOr<wan::v1::JobReport> report = videos.GetReport(job->name(), session_.stop());
    if (!report.ok()) return report.status();
    reports::Run measured = reports::RunOf(*std::move(report));
    measured.name = one.name;
    measured.variant = variant.name;
    measured.number = run;
    if (run == 1) {
      absl::Status compared = Compare(videos, *end, variant.name, results, measured);
      if (!compared.ok()) return compared;
    }
    runs_.push_back(std::move(measured));
    return absl::OkStatus();
  }

  // If the run has no variant, stores the result, and the frames for the report; otherwise compares
  // the result with that of the run without a variant. `measured` will become the next entry of
  // runs_.
  absl::Status Compare(const VideoClient& videos, const wan::v1::Event& end,
                       const std::string& variant, CaseResults& results, reports::Run& measured) {
    absl::StatusOr<Result> result = ReadResult(videos, end);
    if (!result.ok()) return result.status();
    if (variant.empty() && !result->video.empty()) {
      absl::StatusOr<std::vector<std::string>> frames =
          FrameStrip(result->video, measured.report.request().num_frames(), session_.stop());
      if (frames.ok()) measured.frames = *std::move(frames);
    }
    if (result->latents.empty()) return absl::OkStatus();
    if (variant.empty()) {
      results.own = *std::move(result);
      for (const auto& [index, early] : results.early) {
        runs_[index].difference = Difference(results.own, early);
      }
      results.early.clear();
    } else if (results.own.latents.empty()) {
      results.early.emplace_back(runs_.size(), *std::move(result));
    } else {
      measured.difference = Difference(results.own, *result);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Result> ReadResult(const VideoClient& videos, const wan::v1::Event& end) {
    Result result;
    for (const wan::v1::Artifact& artifact : end.completed().artifacts()) {
      if (artifact.kind() == wan::v1::OUTPUT_KIND_MP4) {
        result.video_sha256 = artifact.sha256();
        absl::StatusOr<std::string> path = FetchVideo(session_, videos, artifact, scratch_);
        if (path.ok()) {
          result.video = *std::move(path);
        } else {
          session_.Say(absl::StrCat("no frames of ", Printable(end.job()), ": ",
                                    FormatError(path.status())));
        }
      }
      if (artifact.kind() != wan::v1::OUTPUT_KIND_LATENTS) continue;
      absl::Status read = videos.ReadArtifact(
          artifact.name(), 0,
          [&](const wan::v1::DownloadArtifactResponse& chunk) {
            result.latents += chunk.data();
            return absl::OkStatus();
          },
          session_.stop());
      if (!read.ok()) return read;
    }
    return result;
  }

  // Compares two results; returns nullopt if the videos have different sizes, which their settings
  // show.
  std::optional<reports::ResultDifference> Difference(const Result& own,
                                                      const Result& other) const {
    absl::StatusOr<reports::ResultDifference> difference =
        CompareLatents(own.latents, other.latents);
    if (!difference.ok()) return std::nullopt;
    if (!own.video_sha256.empty() && !other.video_sha256.empty()) {
      difference->same_video = own.video_sha256 == other.video_sha256;
    }
    if (difference->same_video == false && !own.video.empty() && !other.video.empty()) {
      const absl::StatusOr<VideoComparison> frames =
          CompareVideos(own.video, other.video, nullptr, session_.stop());
      if (frames.ok()) difference->psnr = Summarize(*frames, &FrameMetrics::psnr).mean;
    }
    return *difference;
  }

  Session& session_;
  const BenchCommand& command_;
  const VideoClient videos_;
  ScratchFolder scratch_;
  OtherServer original_;
  std::vector<std::pair<std::string, OtherServer>> options_;
  // The servers' models that have run; the next run of one is warm unless it is loaded again.
  std::set<std::pair<const VideoClient*, std::string>> used_;
  std::vector<reports::Run> runs_;
  std::vector<std::string> failures_;
};

}  // namespace

ExitCode Run(Session& session, const BenchCommand& command) {
  const absl::StatusOr<std::vector<BenchCase>> cases = CasesOf(command);
  if (!cases.ok()) return session.RefuseUsage(cases.status());
  absl::StatusOr<std::vector<reports::Ceilings>> ceilings = NamedCeilings(command.ceilings);
  if (!ceilings.ok()) return session.RefuseUsage(ceilings.status());
  // Write an empty report first, to find out now whether the folder can be written.
  if (const absl::Status empty =
          WriteReports(command.output, {"Wan2.2 reports", "reports", {}, {}}, {});
      !empty.ok()) {
    return session.RefuseUsage(empty);
  }
  Bench bench(session, command);
  if (const absl::Status reached = bench.Connect(); !reached.ok()) return session.Fail(reached);
  bool stopped = false;
  for (const BenchCase& one : *cases) {
    if (!bench.RunCase(one)) {
      stopped = true;
      break;
    }
  }
  if (command.ceilings.empty()) {
    *ceilings = KeptCeilings(session.data_home(), bench.runs(),
                             [&](const std::string& message) { session.Say(message); });
  }
  reports::Document document = reports::BuildReport(bench.runs(), *ceilings);
  if (!bench.failures().empty()) {
    document.blocks.push_back(reports::Paragraph{"These did not run:"});
    document.blocks.push_back(reports::List{bench.failures()});
  }
  const absl::Status written = WriteReports(command.output, document, bench.runs());
  if (!written.ok()) return session.RefuseUsage(written);
  if (!bench.runs().empty()) {
    session.console().out << Rendered({"", "", {reports::SummaryTable(bench.runs())}, {}}, {},
                                      ReportFormat::kText, session.console().out_columns)
                          << std::flush;
  }
  session.console().out << command.output << "/report.html\n" << std::flush;
  if (stopped) {
    session.Say("interrupted");
    return kExitCancelled;
  }
  return bench.failures().empty() ? kExitDone : kExitFailed;
}

}  // namespace wan::client
