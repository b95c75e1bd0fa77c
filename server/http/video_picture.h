// Answers requests for a thumbnail or a sprite sheet of a finished video.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/http/video_query.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Keeps the pictures that were used last. Thread-safe.
class PictureCache {
 public:
  // `most_bytes` limits the sum of the pictures' sizes.
  explicit PictureCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<std::string> Find(const std::string& key);
  void Add(const std::string& key, std::string picture);

 private:
  using Entry = std::pair<std::string, std::string>;  // key and picture

  const size_t most_bytes_;
  absl::Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the one that was used last comes first
  std::map<std::string, std::list<Entry>::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Answers with the picture of `file`, a video of the completed job `job`. If the cache lacks the
// picture, decodes the video in steps on the pool, in the class kDecoding. All arguments must
// outlive the reply.
void AnswerWithPicture(JobService& jobs, WorkerPool& pool, PictureCache& cache,
                       const std::shared_ptr<VideoExchange>& exchange, const wan::v1::Job& job,
                       const wan::v1::Artifact& file, ContentVariant variant,
                       const HttpReply& reply);

}  // namespace wan::server
