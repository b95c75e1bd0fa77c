#include "client/wanctl/progress.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 8;

std::string QueuedText(const wan::v1::Event::Queued& queued) {
  std::string text = "queued";
  if (queued.position() == 0) {
    text += ", next to run";
  } else {
    absl::StrAppend(&text, " behind ", queued.position(),
                    queued.position() == 1 ? " job" : " jobs");
  }
  // Do not show an estimate of less than a second.
  if (queued.has_eta_seconds() && queued.eta_seconds() >= 1) {
    absl::StrAppend(&text, ", starts in about ", FormatClock(queued.eta_seconds()));
  }
  return text;
}

// Whether the stage is part of a step (Step_N_Loading, Step_N_Inference); a step has its own line.
bool BelongsToStep(const std::string& stage) { return absl::StartsWith(stage, "Step_"); }

// Returns a bar for `done` of `total`, such as "====> ".
std::string Bar(int done, int total, int width) {
  const int filled = static_cast<int>(int64_t{width} * std::clamp(done, 0, total) / total);
  std::string bar(filled, '=');
  if (filled < width) {
    bar += '>';
    bar.append(width - filled - 1, ' ');
  }
  return bar;
}

}  // namespace

std::optional<std::string> EventLine(const wan::v1::Event& event) {
  const std::string job = Printable(event.job());
  switch (event.kind_case()) {
    case wan::v1::Event::kQueued:
      return absl::StrCat(job, " ", QueuedText(event.queued()));
    case wan::v1::Event::kStageFinished: {
      const wan::v1::StageReport& stage = event.stage_finished();
      if (BelongsToStep(stage.stage())) return std::nullopt;
      std::string line = absl::StrFormat("%s %.2f s", Printable(stage.stage()), stage.seconds());
      if (!stage.error().empty()) absl::StrAppend(&line, ": ", Printable(stage.error()));
      return line;
    }
    case wan::v1::Event::kStepProgress: {
      const wan::v1::StepProgress& progress = event.step_progress();
      std::string line = absl::StrFormat("Step %d/%d  %.2f s", progress.step(), progress.total(),
                                         progress.seconds());
      if (progress.has_eta_seconds()) {
        absl::StrAppend(&line, "  ", FormatClock(progress.eta_seconds()), " left");
      }
      return line;
    }
    case wan::v1::Event::kRequeued:
      return absl::StrCat(job, " runs again: ", Printable(event.requeued().reason()));
    case wan::v1::Event::kResumed:
      return absl::StrCat(job, " goes on after step ", event.resumed().step());
    case wan::v1::Event::kCompleted:
      return absl::StrFormat("%s completed in %.2f s", job, event.completed().seconds());
    default:
      return std::nullopt;
  }
}

bool StaysOnTerminal(const wan::v1::Event& event) {
  return event.has_requeued() || event.has_resumed() || event.has_completed() ||
         // true for the first event of a job, whose line has the job's name
         (event.has_queued() && event.sequence() == 1);
}

void ProgressBar::Add(const wan::v1::Event& event) {
  switch (event.kind_case()) {
    case wan::v1::Event::kQueued:
      waiting_ = QueuedText(event.queued());
      break;
    case wan::v1::Event::kRequeued:
      // A new attempt has begun, so its progress starts again.
      *this = ProgressBar();
      waiting_ = "queued again";
      break;
    case wan::v1::Event::kResumed:
      step_ = event.resumed().step();
      break;
    case wan::v1::Event::kStageStarted:
      stage_ = Printable(event.stage_started().stage());
      break;
    case wan::v1::Event::kStepProgress: {
      const wan::v1::StepProgress& progress = event.step_progress();
      step_ = progress.step();
      total_ = progress.total();
      ++steps_seen_;
      seconds_seen_ += progress.seconds();
      eta_seconds_.reset();
      if (progress.has_eta_seconds()) eta_seconds_ = progress.eta_seconds();
      break;
    }
    default:
      break;
  }
}

std::string ProgressBar::Render(int columns) const {
  std::string text = stage_.empty() ? waiting_ : stage_;
  if (total_ > 0) {
    text = absl::StrFormat("%d/%d  %.2f s/step", step_, total_, seconds_seen_ / steps_seen_);
    if (eta_seconds_) absl::StrAppend(&text, "  ", FormatClock(*eta_seconds_), " left");
    if (!stage_.empty()) absl::StrAppend(&text, "  ", stage_);
    // The 4 characters are two brackets, a space, and the last column, after which some terminals
    // wrap.
    const int bar_width = std::min(columns - static_cast<int>(text.size()) - 4, kWidestBar);
    if (bar_width >= kNarrowestBar) {
      return absl::StrCat("[", Bar(step_, total_, bar_width), "] ", text);
    }
  }
  return text.substr(0, std::max(columns - 1, 0));
}

}  // namespace wan::client
