#include "demo/evaluate/runner.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/compare/frame_metrics.h"
#include "client/download.h"
#include "client/error.h"
#include "demo/evaluate/work_queue.h"
#include "engine/media/image_decode.h"
#include "engine/media/image_resize.h"
#include "engine/media/video_reader.h"

namespace wan::demo {
namespace {

// Reasons in the server's errors (docs/use/api.md).
constexpr std::string_view kQueueFull = "QUEUE_FULL";
constexpr std::string_view kModelLoading = "MODEL_LOADING";
// How long to wait if the server does not say how long.
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

bool HasReason(const absl::Status& status, std::string_view reason) {
  return client::DetailsOf(status).reason == reason;
}

double Seconds(const google::protobuf::Timestamp& time) {
  return double(time.seconds()) + 1e-9 * time.nanos();
}

// Against the image as the server's models see it, at the video's size.
absl::StatusOr<double> FirstFramePsnr(const std::string& image_bytes, const VideoClip& clip) {
  const absl::StatusOr<DecodedImage> decoded = DecodeImage(image_bytes);
  if (!decoded.ok()) return decoded.status();
  const absl::StatusOr<RgbImage> image = CoverAndCrop(decoded->image, {clip.width, clip.height});
  if (!image.ok()) return image.status();
  return client::Psnr(image->pixels, std::span(clip.rgb).first(image->pixels.size()));
}

// Returns the error of a job that has made no video.
absl::Status WhyNot(const wan::v1::Event& end) {
  if (end.has_failed()) return client::FromProto(end.failed().status());
  return absl::CancelledError(absl::StrCat("cancelled: ", end.cancelled().reason()));
}

}  // namespace

Runner::Runner(const client::VideoClient& videos, const RunFolder& folder,
               client::BackoffClock& clock, int concurrency, std::ostream& progress)
    : videos_(videos),
      folder_(folder),
      clock_(clock),
      concurrency_(concurrency > 0 ? concurrency : std::numeric_limits<size_t>::max()),
      progress_(progress) {}

absl::StatusOr<std::vector<VideoOutcome>> Runner::Run(const std::vector<PlannedVideo>& plan,
                                                      const std::stop_token& stop) {
  std::vector<VideoOutcome> outcomes(plan.size());
  std::deque<size_t> waiting;
  for (size_t i = 0; i < plan.size(); ++i) {
    outcomes[i] = {.video = &plan[i], .result = folder_.Load(plan[i].key), .error = {}};
    if (!outcomes[i].result) waiting.push_back(i);
  }
  size_t done = plan.size() - waiting.size();
  if (done > 0) progress_ << done << " of " << plan.size() << " videos are there already\n";

  // The caller requests this stop, or the first thread that has an error.
  std::stop_source end_run;
  const std::stop_callback pass_on(stop, [&end_run] { end_run.request_stop(); });
  std::mutex mutex;  // guards outcomes, first_error, done and progress_
  absl::Status first_error;
  const auto fail = [&](const absl::Status& error) {
    {
      const std::lock_guard lock(mutex);
      first_error.Update(error);
    }
    end_run.request_stop();
  };
  const auto finish = [&](size_t index, VideoOutcome outcome) {
    const std::lock_guard lock(mutex);
    progress_ << ++done << " of " << plan.size() << "  " << plan[index].key;
    if (!outcome.result) progress_ << "  no video: " << outcome.error.message();
    progress_ << std::endl;
    outcomes[index] = std::move(outcome);
  };
  {
    WorkQueue looks(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
    const absl::Status status = SubmitAndFollow(
        plan, std::move(waiting), end_run.get_token(),
        [&](size_t index, const std::string& job, const wan::v1::Event& end) {
          looks.Add([&, index, job, end] {
            absl::StatusOr<VideoOutcome> outcome = Look(plan[index], job, end, end_run.get_token());
            if (outcome.ok()) {
              finish(index, *std::move(outcome));
            } else {
              fail(outcome.status());
            }
          });
        });
    if (!status.ok()) fail(status);
  }
  if (!first_error.ok()) return first_error;
  return outcomes;
}

absl::Status Runner::SubmitAndFollow(const std::vector<PlannedVideo>& plan,
                                     std::deque<size_t> waiting, const std::stop_token& stop,
                                     const OnEnd& on_end) const {
  struct Submitted {
    size_t index;
    std::string job;
  };
  std::deque<Submitted> submitted;
  while (!waiting.empty() || !submitted.empty()) {
    while (!waiting.empty() && submitted.size() < concurrency_) {
      absl::StatusOr<std::string> job = Submit(plan[waiting.front()], !submitted.empty(), stop);
      if (!job.ok() && !submitted.empty() && HasReason(job.status(), kQueueFull)) break;
      if (!job.ok()) return job.status();
      submitted.push_back({waiting.front(), *std::move(job)});
      waiting.pop_front();
    }
    // When the oldest job has ended, a place in the queue is free or will be soon.
    const Submitted oldest = std::move(submitted.front());
    submitted.pop_front();
    const absl::StatusOr<wan::v1::Event> end = videos_.WatchJob(
        oldest.job, 0, [](const wan::v1::Event&) {}, stop);
    if (!end.ok()) return end.status();
    on_end(oldest.index, oldest.job, *end);
  }
  return absl::OkStatus();
}

// If jobs of this run are in the queue, return its being full as an error; otherwise wait until it
// has room.
absl::StatusOr<std::string> Runner::Submit(const PlannedVideo& video, bool others_wait,
                                           const std::stop_token& stop) const {
  wan::v1::GenerationRequest request = video.request;
  request.set_request_id(folder_.RequestId(video.key));
  client::Backoff backoff = videos_.NewBackoff(stop);
  while (true) {
    const absl::StatusOr<wan::v1::Job> job = videos_.CreateJob(request, stop);
    if (job.ok()) return job->name();
    if (stop.stop_requested()) return absl::CancelledError("the caller stopped");
    const bool full = HasReason(job.status(), kQueueFull);
    if (full && others_wait) return job.status();
    if (full || HasReason(job.status(), kModelLoading)) {
      clock_.Wait(client::DetailsOf(job.status()).retry_delay.value_or(kRetryDelay), stop);
    } else if (!backoff.ShouldRetry(job.status())) {
      return job.status();
    }
  }
}

absl::StatusOr<wan::v1::Job> Runner::GetJob(const std::string& job,
                                            const std::stop_token& stop) const {
  client::Backoff backoff = videos_.NewBackoff(stop);
  while (true) {
    absl::StatusOr<wan::v1::Job> record = videos_.GetJob(job, stop);
    if (record.ok() || !backoff.ShouldRetry(record.status())) return record;
  }
}

absl::StatusOr<VideoOutcome> Runner::Look(const PlannedVideo& video, const std::string& job,
                                          const wan::v1::Event& end,
                                          const std::stop_token& stop) const {
  if (!end.has_completed()) return VideoOutcome{&video, std::nullopt, WhyNot(end)};
  const auto& artifacts = end.completed().artifacts();
  const auto mkv = std::find_if(artifacts.begin(), artifacts.end(), [](const auto& artifact) {
    return artifact.kind() == wan::v1::OUTPUT_KIND_LOSSLESS_MKV;
  });
  if (mkv == artifacts.end()) {
    return absl::DataLossError(absl::StrCat(job, " has no lossless video"));
  }
  const std::string path = folder_.VideoPath(video.key);
  if (absl::Status status = client::Download(videos_, *mkv, path, nullptr, stop); !status.ok()) {
    return status;
  }
  const absl::StatusOr<wan::v1::Job> record = GetJob(job, stop);
  if (!record.ok()) return record.status();
  const absl::StatusOr<VideoClip> clip = ReadVideo(path);
  if (!clip.ok()) return clip.status();
  absl::StatusOr<Sight> sight = Detect({clip->rgb, clip->frames, clip->height, clip->width});
  if (!sight.ok()) return sight.status();

  VideoResult result{.job = job,
                     .request = ResolvedJson(record->request()),
                     .sight = *std::move(sight),
                     .first_frame_psnr = {},
                     .create_time = Seconds(record->create_time()),
                     .start_time = Seconds(record->start_time()),
                     .end_time = Seconds(record->end_time())};
  if (video.mode == VideoMode::kImageToVideo) {
    const absl::StatusOr<double> psnr = FirstFramePsnr(video.request.image(), *clip);
    if (!psnr.ok()) return psnr.status();
    result.first_frame_psnr = *psnr;
  }
  if (absl::Status status = folder_.Save(video.key, result); !status.ok()) return status;
  return VideoOutcome{&video, std::move(result), absl::OkStatus()};
}

}  // namespace wan::demo
