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
#include "server/http/byte_range.h"
#include "server/http/entity_tag.h"
#include "server/http/video_object.h"
#include "server/http/video_query.h"

namespace wan::server {
namespace {

// Downloads over gRPC have pieces of the same size.
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

}  // namespace

HttpAnswer VideoContent(const VideoExchange& exchange, JobService& jobs, Admission& admission,
                        WorkerPool& pool) {
  if (absl::Status status = CheckContentQuery(exchange.head.query); !status.ok()) {
    return exchange.Failed(status);
  }
  const absl::StatusOr<wan::v1::Job> job = jobs.Get(exchange.job);
  if (!job.ok()) return exchange.Failed(job.status());
  const wan::v1::Artifact* const file = VideoFileOf(*job);
  if (job->state() != wan::v1::JOB_STATE_COMPLETED || file == nullptr) {
    const std::string status = VideoOf(*job)["status"];
    return exchange.Failed(WithReason(
        absl::NotFoundError(absl::StrCat(exchange.id, " is ", status,
                                         "; it has content once its status is completed")),
        "VIDEO_NOT_COMPLETED"));
  }
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

}  // namespace wan::server
