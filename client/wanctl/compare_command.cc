#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/compare/comparison_report.h"
#include "client/compare/side_by_side.h"
#include "client/compare/video_comparison.h"
#include "client/download.h"
#include "client/reports/render.h"
#include "client/video_client.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/display.h"
#include "client/wanctl/receipt_comparison.h"
#include "client/wanctl/report_files.h"
#include "client/wanctl/scratch_folder.h"
#include "client/wanctl/text.h"
#include "proto/enum_words.h"

namespace wan::client {
namespace {

namespace fs = std::filesystem;

// One of the two videos.
struct Side {
  ComparedVideo video;
  // The file to read.
  std::string path;
  // The job that made the video; unset for a file of the command line.
  std::optional<wan::v1::Receipt> receipt;

  const wan::v1::Artifact* Find(wan::v1::OutputKind kind) const {
    if (!receipt) return nullptr;
    const auto& artifacts = receipt->artifacts();
    const auto found = std::find_if(artifacts.begin(), artifacts.end(),
                                    [kind](const auto& one) { return one.kind() == kind; });
    return found == artifacts.end() ? nullptr : &*found;
  }
};

// FAILED_PRECONDITION if the job has no video (yet).
absl::Status CheckHasVideo(const wan::v1::Job& job) {
  const std::string name = Printable(job.name());
  if (job.state() != wan::v1::JOB_STATE_COMPLETED) {
    const bool ended =
        job.state() == wan::v1::JOB_STATE_FAILED || job.state() == wan::v1::JOB_STATE_CANCELLED;
    return absl::FailedPreconditionError(absl::StrCat(
        "state of ", name, ": is ", std::string(WordOf(job.state())), "; must be completed, ",
        ended ? absl::StrCat("'wanctl get ", name, "' shows why it is not")
              : absl::StrCat("for example after 'wanctl watch ", name, "'")));
  }
  std::string kinds;
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    if (artifact.kind() == wan::v1::OUTPUT_KIND_MP4 ||
        artifact.kind() == wan::v1::OUTPUT_KIND_LOSSLESS_MKV) {
      return absl::OkStatus();
    }
    absl::StrAppend(&kinds, kinds.empty() ? "." : ", .",
                    std::string(ArtifactKindName(artifact.kind())));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "files of ", name, ": there ", kinds.empty() ? "are none" : "is only " + kinds,
      "; there must be an .mkv or .mp4, for example of a job made with 'submit --artifact mkv'"));
}

VideoShape ShapeOf(const wan::v1::GenerationRequest& request) {
  return {request.width(), request.height(), request.num_frames(),
          static_cast<double>(request.fps())};
}

// Carries out one `wanctl compare`. Each step returns an exit code if the command ends with this
// step.
class Comparison {
 public:
  Comparison(Session& session, const CompareCommand& command)
      : session_(session),
        command_(command),
        display_(session.console().err, session.console().err_columns) {}

  ExitCode Run() {
    for (const auto step : {&Comparison::CheckDestinations, &Comparison::Resolve,
                            &Comparison::Fetch, &Comparison::Measure, &Comparison::Write}) {
      if (const std::optional<ExitCode> ended = (this->*step)()) return *ended;
    }
    return kExitDone;
  }

 private:
  std::optional<ExitCode> CheckDestinations() {
    if (!command_.side_by_side.empty()) {
      const absl::Status status = CheckDestination(command_.side_by_side);
      if (!status.ok()) {
        return session_.RefuseUsage(
            absl::InvalidArgumentError(absl::StrCat("--side-by-side: ", status.message())));
      }
    }
    for (const std::string& output : command_.outputs) {
      if (IsFolder(output)) continue;
      if (const absl::Status status = CheckDestination(output); !status.ok()) {
        return session_.RefuseUsage(
            absl::InvalidArgumentError(absl::StrCat("--output: ", status.message())));
      }
    }
    return std::nullopt;
  }

  std::optional<ExitCode> Resolve() {
    for (const auto& [side, name] : {std::pair(&a_, &command_.a), std::pair(&b_, &command_.b)}) {
      side->video.name = name->name;
      if (name->file) {
        std::error_code ignored;
        if (!fs::is_regular_file(name->name, ignored)) {
          return session_.RefuseUsage(absl::NotFoundError(absl::StrCat(
              name->name, " is not a file that can be read; name a video, or a job by jobs/ID")));
        }
        side->path = name->name;
        continue;
      }
      const absl::StatusOr<wan::v1::Job> job =
          session_.Videos().GetJob(name->name, session_.stop());
      if (!job.ok()) return session_.Fail(job.status());
      if (absl::Status status = CheckHasVideo(*job); !status.ok()) return session_.Fail(status);
      absl::StatusOr<wan::v1::Receipt> receipt =
          session_.Videos().GetReceipt(name->name, session_.stop());
      if (!receipt.ok()) return session_.Fail(receipt.status());
      side->receipt = *std::move(receipt);
    }
    if (!a_.receipt || !b_.receipt) return std::nullopt;
    // Checks the outputs before anything is downloaded.
    const absl::Status status =
        CheckComparable(ShapeOf(a_.receipt->request()), ShapeOf(b_.receipt->request()));
    if (!status.ok()) return session_.Fail(status);
    return std::nullopt;
  }

  // The artifact kind that both sides have, lossless if possible, so that compression affects both
  // sides or none. A file of the command line counts as having every kind.
  std::optional<wan::v1::OutputKind> CommonKind() const {
    for (const wan::v1::OutputKind kind :
         {wan::v1::OUTPUT_KIND_LOSSLESS_MKV, wan::v1::OUTPUT_KIND_MP4}) {
      const auto has = [kind](const Side& side) { return !side.receipt || side.Find(kind); };
      if (has(a_) && has(b_)) return kind;
    }
    return std::nullopt;
  }

  std::optional<ExitCode> Fetch() {
    if (!a_.receipt && !b_.receipt) return std::nullopt;
    if (absl::Status status = scratch_.Create(); !status.ok()) return session_.Fail(status);
    const std::optional<wan::v1::OutputKind> common = CommonKind();
    for (Side* const side : {&a_, &b_}) {
      if (!side->receipt) continue;
      const wan::v1::Artifact* artifact =
          side->Find(common.value_or(wan::v1::OUTPUT_KIND_LOSSLESS_MKV));
      if (artifact == nullptr) artifact = side->Find(wan::v1::OUTPUT_KIND_MP4);
      if (artifact == nullptr) {
        return session_.Fail(absl::FailedPreconditionError(absl::StrCat(
            "files of ", Printable(side->video.name), ": its receipt names no .mkv or .mp4")));
      }
      side->video.artifact = std::string(ArtifactKindName(artifact->kind()));
      side->path = scratch_.File((side == &a_ ? "a." : "b.") + side->video.artifact).string();
      const absl::Status status = Download(
          session_.Videos(), *artifact, side->path,
          [&](uint64_t done, uint64_t total) {
            display_.ShowInPlace(absl::StrCat(Printable(side->video.name), "  ", FormatBytes(done),
                                              " of ", FormatBytes(total)));
          },
          session_.stop());
      display_.Clear();
      if (!status.ok()) return session_.Fail(status);
    }
    return std::nullopt;
  }

  FrameProgress Progress(const char* doing) {
    return
        [this, doing](int frames) { display_.ShowInPlace(absl::StrCat(doing, " frame ", frames)); };
  }

  // Downloads were verified, so a video that cannot be read is a file of the command line.
  ExitCode Refuse(const absl::Status& status) {
    display_.Clear();
    return absl::IsDataLoss(status) || absl::IsInvalidArgument(status)
               ? session_.RefuseUsage(status)
               : session_.Fail(status);
  }

  std::optional<ExitCode> Measure() {
    absl::StatusOr<VideoComparison> videos =
        CompareVideos(a_.path, b_.path, Progress("comparing"), session_.stop());
    if (!videos.ok()) return Refuse(videos.status());
    report_ = {a_.video, b_.video, *std::move(videos), std::nullopt, command_.side_by_side, 0};
    if (a_.receipt && b_.receipt) {
      report_.differences = MakerDifferences(*a_.receipt, *b_.receipt, {"in A", "in B", false});
    }
    if (!command_.side_by_side.empty()) {
      report_.gain = DifferenceGain(report_.videos);
      const absl::Status status =
          WriteSideBySide(a_.path, b_.path, report_.videos, report_.gain, command_.side_by_side,
                          Progress("writing"), session_.stop());
      if (!status.ok()) return Refuse(status);
    }
    display_.Clear();
    return std::nullopt;
  }

  absl::Status WriteOutput(const std::string& output, const reports::Document& document) const {
    if (IsFolder(output)) {
      if (absl::Status status = WritePages(output, "comparison", document); !status.ok()) {
        return status;
      }
      for (const char* const name : {"comparison.json", "frames.csv"}) {
        absl::Status status = WriteOutput((fs::path(output) / name).string(), document);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    }
    const std::optional<ReportFormat> format = FormatOfPath(output);
    if (!format) return WriteFile(output, ComparisonCsv(report_.videos));
    return WriteFile(output, *format == ReportFormat::kJson ? ComparisonJson(report_) + "\n"
                                                            : Rendered(document, {}, *format));
  }

  std::optional<ExitCode> Write() {
    reports::Document document = ComparisonDocument(report_);
    for (const std::string& output : command_.outputs) {
      const absl::Status status = WriteOutput(output, document);
      if (!status.ok()) return session_.RefuseUsage(status);
    }
    if (session_.json()) {
      session_.console().out << ComparisonJson(report_) << '\n' << std::flush;
      return std::nullopt;
    }
    // On a terminal the title and the list of frames are left out.
    document.title.clear();
    document.sections.clear();
    session_.console().out << reports::RenderText(document) << std::flush;
    return std::nullopt;
  }

  Session& session_;
  const CompareCommand& command_;
  Display display_;
  ScratchFolder scratch_;
  Side a_;
  Side b_;
  ComparisonReport report_;
};

}  // namespace

ExitCode Run(Session& session, const CompareCommand& command) {
  return Comparison(session, command).Run();
}

}  // namespace wan::client
