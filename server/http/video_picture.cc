#include "server/http/video_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/frame_picture.h"
#include "server/http/entity_tag.h"

namespace wan::server {
namespace {

constexpr int kThumbnailWidth = 480;
constexpr int kSheetFrames = 16;
constexpr int kSheetFrameWidth = 240;

FrameGrid GridOf(ContentVariant variant, int frames) {
  FrameGrid grid;
  grid.frames = std::max(1, frames);
  grid.most_width = kThumbnailWidth;
  if (variant == ContentVariant::kSpritesheet) {
    grid.shown = std::min(kSheetFrames, grid.frames);
    grid.columns = static_cast<int>(std::ceil(std::sqrt(grid.shown)));
    grid.most_width = kSheetFrameWidth;
  }
  return grid;
}

// Reads an artifact from any offset. Reads at consecutive offsets share one reader.
FileBytes BytesOf(JobService& jobs, const wan::v1::Artifact& file) {
  const auto reader = std::make_shared<std::optional<ArtifactReader>>();
  return {file.size_bytes(),
          [&jobs, reader, name = file.name()](uint64_t offset,
                                              size_t most) -> absl::StatusOr<std::string> {
            if (!reader->has_value() || (*reader)->offset() != offset) {
              absl::StatusOr<JobService::OpenedArtifact> opened = jobs.OpenArtifact(name, offset);
              if (!opened.ok()) return opened.status();
              *reader = std::move(opened->reader);
            }
            return (*reader)->Read(most);
          }};
}

// Makes the picture of one request. The object keeps itself alive until it has answered.
class PictureWork : public std::enable_shared_from_this<PictureWork> {
 public:
  struct Parts {
    JobService& jobs;
    WorkerPool& pool;
    PictureCache& cache;
    std::shared_ptr<VideoExchange> exchange;
    wan::v1::Artifact file;
    FrameGrid grid;
    std::string tag;
    HttpReply reply;
  };
  explicit PictureWork(Parts parts) : parts_(std::move(parts)) {}

  void Begin() {
    const Call& call = *parts_.exchange->call;
    parts_.pool.Post(WorkClass::kDecoding, call.party(), parts_.exchange->gone, Task());
  }

 private:
  WorkerPool::Task Task() {
    return [self = shared_from_this()](const absl::Status& turn) { self->Step(turn); };
  }

  void Step(const absl::Status& turn) {
    if (!turn.ok()) return Fail(turn);
    if (picture_ == nullptr) {
      // Another request may have made the picture meanwhile.
      if (std::optional<std::string> known = parts_.cache.Find(parts_.tag)) {
        return Answer(*std::move(known));
      }
      absl::StatusOr<std::unique_ptr<FramePicture>> opened =
          OpenFramePicture(BytesOf(parts_.jobs, parts_.file), parts_.grid);
      if (!opened.ok()) return Fail(opened.status());
      picture_ = *std::move(opened);
    }
    const absl::StatusOr<bool> complete = picture_->Step();
    if (!complete.ok()) return Fail(complete.status());
    if (!*complete) {
      const Call& call = *parts_.exchange->call;
      parts_.pool.PostNext(WorkClass::kDecoding, call.party(), parts_.exchange->gone, Task());
      return;
    }
    absl::StatusOr<std::string> jpeg = picture_->Jpeg();
    if (!jpeg.ok()) return Fail(jpeg.status());
    parts_.cache.Add(parts_.tag, *jpeg);
    Answer(*std::move(jpeg));
  }

  void Fail(const absl::Status& status) { parts_.reply(parts_.exchange->Failed(status)); }

  void Answer(std::string jpeg) {
    parts_.exchange->call->End(absl::OkStatus()).IgnoreError();
    HttpAnswer answer;
    answer.fields = {{"Content-Type", "image/jpeg"},
                     {"ETag", parts_.tag},
                     // Browsers may cache the picture, because the files of a job never change.
                     {"Cache-Control", "private, max-age=86400, immutable"}};
    answer.body = std::move(jpeg);
    parts_.reply(std::move(answer));
  }

  const Parts parts_;
  std::unique_ptr<FramePicture> picture_;  // null before the first step
};

}  // namespace

std::optional<std::string> PictureCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void PictureCache::Add(const std::string& key, std::string picture) {
  absl::MutexLock lock(&mutex_);
  if (by_key_.contains(key) || picture.size() > most_bytes_) return;
  bytes_ += picture.size();
  entries_.emplace_front(key, std::move(picture));
  by_key_[key] = entries_.begin();
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().second.size();
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

void AnswerWithPicture(JobService& jobs, WorkerPool& pool, PictureCache& cache,
                       const std::shared_ptr<VideoExchange>& exchange, const wan::v1::Job& job,
                       const wan::v1::Artifact& file, ContentVariant variant,
                       const HttpReply& reply) {
  const bool sheet = variant == ContentVariant::kSpritesheet;
  const std::string tag =
      absl::StrCat("\"", file.sha256(), sheet ? "-spritesheet" : "-thumbnail", "\"");
  if (TagListed(exchange->head.All("if-none-match"), tag)) {
    exchange->call->End(absl::OkStatus()).IgnoreError();
    HttpAnswer answer;
    answer.status = 304;
    answer.fields = {{"ETag", tag}};
    return reply(std::move(answer));
  }
  std::make_shared<PictureWork>(PictureWork::Parts{jobs, pool, cache, exchange, file,
                                                   GridOf(variant, job.request().num_frames()), tag,
                                                   reply})
      ->Begin();
}

}  // namespace wan::server
