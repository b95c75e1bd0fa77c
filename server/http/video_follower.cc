#include "server/http/video_follower.h"

#include <utility>

#include "engine/api/stage.h"
#include "server/http/video_object.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr char kWaiting[] = "waiting";
constexpr char kPreparing[] = "preparing";

// Returns the word that watchers see for a stage. All stages of a step have the same word, because
// they alternate. Null: watchers are not told of the stage.
const char* WordOf(const std::string& name) {
  const std::optional<Stage> stage = ParseStage(name);
  if (!stage.has_value()) return nullptr;
  switch (stage->kind) {
    case StageKind::kModelInitialization:
      return "loading";
    case StageKind::kTi2vPreprocess:
    case StageKind::kT2vPreprocess:
    case StageKind::kI2vPreprocess:
      return kPreparing;
    case StageKind::kT5Encoding:
      return "encoding_text";
    case StageKind::kVaeEncoding:
      return "encoding_image";
    case StageKind::kStepLoading:
    case StageKind::kLoraMerging:
    case StageKind::kStepInference:
      return "denoising";
    case StageKind::kVaeDecoding:
      return "decoding";
    case StageKind::kVideoEncoding:
      return "encoding_video";
    case StageKind::kQueueWait:
    case StageKind::kTotalExecution:
      return nullptr;
  }
  return nullptr;
}

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value.has_value() ? json(*value) : json(nullptr);
}

}  // namespace

VideoFollower::VideoFollower(wan::v1::Job job) : job_(std::move(job)) {
  job_.set_state(wan::v1::JOB_STATE_UNSPECIFIED);
  job_.clear_end_time();
  job_.clear_expire_time();
  job_.clear_error();
  job_.clear_artifacts();
  Wait();
}

void VideoFollower::Wait() {
  job_.clear_progress();
  job_.mutable_progress()->set_total(job_.request().steps());
  stage_ = kWaiting;
  eta_seconds_.reset();
  queue_position_.reset();
}

VideoFollower::Change VideoFollower::Apply(const wan::v1::Event& event) {
  const wan::v1::JobState state = job_.state();
  const json progress = Progress();
  switch (event.kind_case()) {
    case wan::v1::Event::kRequeued:
    case wan::v1::Event::kQueued:
      Wait();
      job_.set_state(wan::v1::JOB_STATE_QUEUED);
      if (!event.has_queued()) break;
      queue_position_ = event.queued().position();
      if (event.queued().has_eta_seconds()) eta_seconds_ = event.queued().eta_seconds();
      break;
    case wan::v1::Event::kStageStarted:
    case wan::v1::Event::kResumed:
    case wan::v1::Event::kStepProgress:
      Work(event);
      break;
    case wan::v1::Event::kCompleted:
      job_.set_state(wan::v1::JOB_STATE_COMPLETED);
      return {.status = true};
    case wan::v1::Event::kFailed:
      job_.set_state(wan::v1::JOB_STATE_FAILED);
      return {.status = true};
    case wan::v1::Event::kCancelled:
      job_.set_state(wan::v1::JOB_STATE_CANCELLED);
      return {.status = true};
    default:
      break;
  }
  return {.status = job_.state() != state, .progress = Progress() != progress};
}

void VideoFollower::Work(const wan::v1::Event& event) {
  if (job_.state() != wan::v1::JOB_STATE_RUNNING) {
    job_.set_state(wan::v1::JOB_STATE_RUNNING);
    stage_ = kPreparing;
    eta_seconds_.reset();  // until now it was the time until the job's start
    queue_position_.reset();
  }
  if (event.has_stage_started()) {
    if (const char* const word = WordOf(event.stage_started().stage())) stage_ = word;
  } else if (event.has_resumed()) {
    job_.mutable_progress()->set_step(event.resumed().step());
  } else {
    *job_.mutable_progress() = event.step_progress();
    eta_seconds_.reset();
    if (event.step_progress().has_eta_seconds()) {
      eta_seconds_ = event.step_progress().eta_seconds();
    }
  }
}

json VideoFollower::Progress() const {
  return {{"progress", ProgressOf(job_)},        {"stage", stage_},
          {"step", job_.progress().step()},      {"steps", job_.progress().total()},
          {"eta_seconds", OrNull(eta_seconds_)}, {"queue_position", OrNull(queue_position_)}};
}

}  // namespace wan::server
