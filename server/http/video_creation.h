// Answers the requests whose body describes a video: to make the video, and to say what the video
// would cost.
#pragma once

#include <memory>
#include <string>

#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Creates a video, and answers once the video's job is on disk. `jobs` and `pool` must outlive the
// reply. May block, because it plans the job.
void CreateVideo(JobService& jobs, WorkerPool& pool, const std::shared_ptr<VideoExchange>& exchange,
                 std::string body, const HttpReply& reply);

// Returns the answer of VideoGeneration.Quote for the video that the body describes; makes no
// video. May block, because it plans the job.
HttpAnswer QuoteVideo(JobService& jobs, const VideoExchange& exchange, std::string body);

}  // namespace wan::server
