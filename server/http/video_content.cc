#include "server/http/video_content.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/http/byte_range.h"
#include "server/http/entity_tag.h"
#include "server/http/video_object.h"
#include "server/http/video_picture.h"
#include "server/http/video_query.h"

namespace wan::server {
namespace {

// Downloads over gRPC have the same piece size.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;

// A download that reads the file at the pace at which the caller reads the answer.
struct Download {
  ArtifactReader reader;
  uint64_t left;
  std::shared_ptr<Call> call;
  Admission::Lease place;

  absl::StatusOr<std::string> Next() {
    absl::StatusOr<std::string> piece = reader.Read(std::min(left, kPieceBytes));
    if (!piece.ok()) return call->End(piece.status());
    left -= std::min<uint64_t>(left, piece->size());
    if (left == 0) call->End(absl::OkStatus()).IgnoreError();
    return piece;
  }
};

// Returns the answer for a video without the wanted file.
HttpAnswer NoContent(const VideoExchange& exchange, const wan::v1::Job& job) {
  if (job.state() == wan::v1::JOB_STATE_COMPLETED) {
    return exchange.Failed(
        WithReason(absl::NotFoundError(absl::StrCat(exchange.id, " has no video, but other files")),
                   kReasonArtifactNotFound));
  }
  const std::string status = VideoOf(job)["status"];
  return exchange.Failed(
      WithReason(absl::NotFoundError(absl::StrCat(exchange.id, " is ", status,
                                                  "; it has content once its status is completed")),
                 "VIDEO_NOT_COMPLETED"));
}

// Sends the file of a completed job.
HttpAnswer FileAnswer(const VideoExchange& exchange, JobService& jobs, Admission& admission,
                      WorkerPool& pool, const wan::v1::Artifact* file) {
  const std::string tag = absl::StrCat("\"", file->sha256(), "\"");
  if (TagListed(exchange.head.All("if-none-match"), tag)) {
    exchange.call->End(absl::OkStatus()).IgnoreError();
    HttpAnswer answer;
    answer.status = 304;
    answer.fields = {{"ETag", tag}};
    return answer;
  }
  const bool head_only = exchange.head.method == "HEAD";
  // If-Range: send only a range if the file is unchanged, because the caller then has the rest.
  const std::string_view if_range = exchange.head.First("if-range");
  const bool same = (if_range.empty() || if_range == tag) && !head_only;
  const std::optional<ByteRange> range =
      ParseByteRange(same ? exchange.head.First("range") : "", file->size_bytes());
  if (!range.has_value()) {
    HttpAnswer answer = exchange.Failed(absl::OutOfRangeError(
        absl::StrCat("the content has ", file->size_bytes(), " bytes, none of that range")));
    answer.fields.emplace_back("Content-Range", absl::StrCat("bytes */", file->size_bytes()));
    return answer;
  }
  absl::StatusOr<Admission::Lease> place =
      head_only ? Admission::Lease() : admission.Download(exchange.party(), exchange.head.peer);
  if (!place.ok()) return exchange.Failed(place.status());
  absl::StatusOr<JobService::OpenedArtifact> opened = jobs.OpenArtifact(file->name(), range->first);
  if (!opened.ok()) return exchange.Failed(opened.status());

  HttpAnswer answer;
  answer.status = range->partial ? 206 : 200;
  const std::string_view name = std::string_view(file->name()).substr(file->name().rfind('/') + 1);
  answer.fields = {
      {"Content-Type", file->content_type()},
      {"Accept-Ranges", "bytes"},
      {"ETag", tag},
      {"Content-Disposition", absl::StrCat("attachment; filename=\"", exchange.id,
                                           std::string(name.substr(name.rfind('.'))), "\"")}};
  if (range->partial) {
    answer.fields.emplace_back(
        "Content-Range", absl::StrCat("bytes ", range->first, "-", range->first + range->count - 1,
                                      "/", file->size_bytes()));
  }
  answer.stream_bytes = range->count;
  if (head_only) {
    exchange.call->End(absl::OkStatus()).IgnoreError();
    return answer;
  }
  const auto download = std::make_shared<Download>(
      Download{std::move(opened->reader), range->count, exchange.call, *std::move(place)});
  answer.next_piece = [&pool, download](HttpAnswer::TakePiece take) {
    pool.Post(download->call->work(), download->call->party(), nullptr,
              [download, take = std::move(take)](const absl::Status&) { take(download->Next()); });
  };
  return answer;
}

// Returns the file of which a picture can be made; null if the job has none.
const wan::v1::Artifact* PicturedFileOf(const wan::v1::Job& job) {
  const auto is_video = [](const wan::v1::Artifact& file) {
    return file.content_type().starts_with("video/");
  };
  const wan::v1::Artifact* const file = VideoFileOf(job);
  if (file != nullptr && is_video(*file)) return file;
  const auto other = std::find_if(job.artifacts().begin(), job.artifacts().end(), is_video);
  return other == job.artifacts().end() ? nullptr : &*other;
}

}  // namespace

void AnswerContent(const VideoContentParts& parts, const std::shared_ptr<VideoExchange>& exchange,
                   const HttpReply& reply) {
  const absl::StatusOr<ContentVariant> variant = ParseContentQuery(exchange->head.query);
  if (!variant.ok()) return reply(exchange->Failed(variant.status()));
  const absl::StatusOr<wan::v1::Job> job = parts.jobs.Get(exchange->job);
  if (!job.ok()) return reply(exchange->Failed(job.status()));
  const bool picture =
      *variant == ContentVariant::kThumbnail || *variant == ContentVariant::kSpritesheet;
  const wan::v1::Artifact* const file = picture ? PicturedFileOf(*job) : VideoFileOf(*job);
  if (job->state() != wan::v1::JOB_STATE_COMPLETED || file == nullptr) {
    return reply(NoContent(*exchange, *job));
  }
  if (!picture) {
    return reply(FileAnswer(*exchange, parts.jobs, parts.admission, parts.pool, file));
  }
  AnswerWithPicture(parts.jobs, parts.pool, parts.pictures, exchange, *job, *file, *variant, reply);
}

}  // namespace wan::server
