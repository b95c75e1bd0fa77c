#include "server/http/video_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "proto/enum_words.h"
#include "server/conversion/convert.h"
#include "server/http/video_id.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr int kWhole = 100;

std::string_view StatusOf(wan::v1::JobState state) {
  switch (state) {
    case wan::v1::JOB_STATE_RUNNING:
      return "in_progress";
    case wan::v1::JOB_STATE_COMPLETED:
      return "completed";
    case wan::v1::JOB_STATE_FAILED:
    case wan::v1::JOB_STATE_CANCELLED:
      return "failed";
    default:
      return "queued";
  }
}

json ErrorOf(const wan::v1::Job& job) {
  const bool cancelled = job.state() == wan::v1::JOB_STATE_CANCELLED;
  if (!cancelled && job.state() != wan::v1::JOB_STATE_FAILED) return nullptr;
  std::string code = cancelled ? "cancelled" : "failed";
  for (const auto& detail : job.error().details()) {
    google::rpc::ErrorInfo info;
    if (!cancelled && detail.UnpackTo(&info)) code = absl::AsciiStrToLower(info.reason());
  }
  return {{"code", code}, {"message", job.error().message()}};
}

json TimeOf(bool present, const google::protobuf::Timestamp& time) {
  return present ? json(time.seconds()) : json(nullptr);
}

// Returns the time from the first frame to the last, in seconds.
std::string SecondsOf(const wan::v1::GenerationRequest& request) {
  if (request.fps() <= 0) return "0";
  return absl::StrCat(static_cast<double>(request.num_frames() - 1) / request.fps());
}

// Describes the image as the server found it and the changes that the server made; null if the job
// has no image.
json InputReferenceOf(const wan::v1::Job& job) {
  if (!job.has_input_image()) return nullptr;
  const wan::v1::InputImage& image = job.input_image();
  return {
      {"format", image.format()},
      {"width", image.width()},
      {"height", image.height()},
      {"exif_orientation", image.exif_orientation()},
      {"blended_over", image.blended_over().empty() ? json(nullptr) : json(image.blended_over())},
      {"bits_per_sample", image.bits_per_sample()},
      {"grey", image.grey()}};
}

}  // namespace

const wan::v1::Artifact* VideoFileOf(const wan::v1::Job& job) {
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    if (artifact.kind() == wan::v1::OUTPUT_KIND_MP4) return &artifact;
  }
  return job.artifacts().empty() ? nullptr : &job.artifacts(0);
}

json ShapeOf(const wan::v1::GenerationRequest& request) {
  return {{"size", absl::StrCat(request.width(), "x", request.height())},
          {"num_frames", request.num_frames()},
          {"fps", request.fps()}};
}

json SamplingOf(const wan::v1::GenerationRequest& request) {
  // In the request message, the scale for low noise comes first.
  const auto& scales = request.guidance_scale();
  json loras = json::array();
  for (const wan::v1::LoraScale& lora : request.loras()) {
    json named = {{"name", lora.name()}};
    if (lora.has_scale()) named["scale"] = lora.scale();
    if (lora.has_high_scale()) named["high_scale"] = lora.high_scale();
    if (lora.has_low_scale()) named["low_scale"] = lora.low_scale();
    loras.push_back(std::move(named));
  }
  // A job that is older than the field used the full decoder.
  const wan::v1::Decoder decoder =
      request.decoder() == wan::v1::DECODER_UNSPECIFIED ? wan::v1::DECODER_FULL : request.decoder();
  return {{"quality", std::string(QualityOf(request))},
          {"decoder", std::string(WordOf(decoder))},
          {"negative_prompt", request.negative_prompt()},
          {"guidance_scale", scales.empty() ? json(nullptr) : json(*scales.rbegin())},
          {"guidance_scale_2", scales.size() < 2 ? json(nullptr) : json(scales[0])},
          {"flow_shift", request.shift()},
          {"loras", std::move(loras)}};
}

int ProgressOf(const wan::v1::Job& job) {
  if (job.state() == wan::v1::JOB_STATE_COMPLETED) return kWhole;
  const wan::v1::StepProgress& progress = job.progress();
  if (progress.total() <= 0) return 0;
  return std::min(kWhole - 1, kWhole * progress.step() / progress.total());
}

json VideoOf(const wan::v1::Job& job) {
  const wan::v1::GenerationRequest& request = job.request();
  json video = {{"id", VideoIdOf(job.name())},
                {"object", "video"},
                {"model", request.model()},
                {"status", StatusOf(job.state())},
                {"progress", ProgressOf(job)},
                {"created_at", job.create_time().seconds()},
                {"completed_at", TimeOf(job.has_end_time(), job.end_time())},
                {"expires_at", TimeOf(job.has_expire_time(), job.expire_time())},
                {"error", ErrorOf(job)},
                {"prompt", request.prompt()},
                {"remixed_from_video_id", nullptr},
                {"input_reference", InputReferenceOf(job)},
                {"seconds", SecondsOf(request)},
                {"num_inference_steps", request.steps()},
                {"seed", request.seed()},
                {"progressive", request.progressive()}};
  video.update(ShapeOf(request));
  video.update(SamplingOf(request));
  return video;
}

json ModelObject(std::string_view name, absl::Time created) {
  return {{"id", name},
          {"object", "model"},
          {"created", absl::ToUnixSeconds(created)},
          {"owned_by", "wanserve"}};
}

}  // namespace wan::server
