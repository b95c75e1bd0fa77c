#include "server/rpc/download_stream.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/calls/gatekeeper.h"
#include "server/conversion/convert.h"
#include "server/conversion/names.h"

namespace wan::server {
namespace {

// The contract allows 1 MiB. Smaller chunks limit the memory of stalled streams, each of which
// holds a chunk twice: as a message and in the transport.
constexpr size_t kChunkBytes = size_t{256} << 10;

// Returns INVALID_ARGUMENT unless the request is for a live video from its beginning.
absl::Status CheckLive(const wan::v1::DownloadArtifactRequest& request, const ArtifactRef& ref) {
  const std::string file(ArtifactFileName(OutputKind::kMp4));
  std::vector<FieldViolation> violations;
  if (ref.file != file) {
    violations.push_back(
        {"name", absl::StrCat("is '", ref.file, "' of the job; must be ", file, " with live")});
  }
  if (request.offset() != 0) {
    violations.push_back(
        {"offset", absl::StrCat("is ", request.offset(), "; must be 0 with live")});
  }
  return violations.empty() ? absl::OkStatus() : InvalidFields(violations);
}

}  // namespace

DownloadStream::DownloadStream(const grpc::CallbackServerContext& context,
                               wan::v1::DownloadArtifactRequest request, const Shared& shared)
    : Stream(shared.pool),
      request_(std::move(request)),
      shared_(shared),
      peer_(context.peer()),
      is_live_(request_.live()) {}

DownloadStream::Next DownloadStream::Produce(wan::v1::DownloadArtifactResponse* chunk,
                                             absl::Status* status) {
  return is_live_ ? ProduceLive(chunk, status) : ProduceFile(chunk, status);
}

DownloadStream::Next DownloadStream::ProduceFile(wan::v1::DownloadArtifactResponse* chunk,
                                                 absl::Status* status) {
  const bool first = !std::exchange(begun_, true);
  *status = ReadFile(first, chunk);
  if (!status->ok()) return Next::kEnd;
  // Send the first message even if nothing is left to read, because it has the metadata.
  return first || !chunk->data().empty() ? Next::kMessage : Next::kEnd;
}

absl::Status DownloadStream::BeginLive() {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(request_.name(), "name");
  if (!ref.ok()) return ref.status();
  if (absl::Status wrong = CheckLive(request_, *ref); !wrong.ok()) return wrong;
  absl::StatusOr<std::unique_ptr<LiveVideoReader>> live = shared_.jobs.WatchVideo(ref->job);
  if (!live.ok()) return live.status();
  live_ = *std::move(live);
  return absl::OkStatus();
}

DownloadStream::Next DownloadStream::ProduceLive(wan::v1::DownloadArtifactResponse* chunk,
                                                 absl::Status* status) {
  if (live_ == nullptr) {
    *status = BeginLive();
    if (!status->ok()) return Next::kEnd;
  }
  // Capture a weak pointer, because the stream owns the reader, which owns the callback.
  if (!live_->Ready([weak = weak_from_this()] {
        if (const auto stream = weak.lock()) stream->Wake();
      })) {
    return Next::kPending;
  }
  const absl::StatusOr<bool> has_begun = live_->Begun();
  *status = has_begun.status();
  if (!status->ok()) return Next::kEnd;
  if (!*has_begun) {  // the job has ended
    is_live_ = false;
    return ProduceFile(chunk, status);
  }
  if (!std::exchange(begun_, true)) {
    *status = TakePlace();
    if (!status->ok()) return Next::kEnd;
    wan::v1::Artifact& artifact = *chunk->mutable_artifact();
    artifact.set_name(request_.name());
    artifact.set_kind(wan::v1::OUTPUT_KIND_MP4);
    artifact.set_content_type(live_->content_type());
  }
  absl::StatusOr<std::string> data = live_->Read(kChunkBytes);
  *status = data.status();
  if (!status->ok() || data->empty()) return Next::kEnd;
  chunk->set_offset(live_offset_);
  live_offset_ += data->size();
  chunk->set_data(*std::move(data));
  return Next::kMessage;
}

absl::Status DownloadStream::ReadFile(bool first, wan::v1::DownloadArtifactResponse* chunk) {
  if (first) {
    if (absl::Status busy = TakePlace(); !busy.ok()) return busy;
    absl::StatusOr<JobService::OpenedArtifact> opened =
        shared_.jobs.OpenArtifact(request_.name(), request_.offset());
    if (!opened.ok()) return opened.status();
    reader_.emplace(std::move(opened->reader));
    *chunk->mutable_artifact() = std::move(opened->artifact);
  }
  chunk->set_offset(reader_->offset());
  absl::StatusOr<std::string> data = reader_->Read(kChunkBytes);
  if (!data.ok()) return data.status();
  chunk->set_data(*std::move(data));
  return absl::OkStatus();
}

absl::Status DownloadStream::TakePlace() {
  auto place = shared_.admission.Download(call()->TakerOf(Front::kGrpc), peer_);
  if (!place.ok()) return place.status();
  place_ = *std::move(place);
  return absl::OkStatus();
}

}  // namespace wan::server
