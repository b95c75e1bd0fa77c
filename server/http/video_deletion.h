// Deletes a video, even one that is still being made.
#pragma once

#include <memory>

#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Deletes the video that the exchange names. If the video has not ended, cancels it and waits for
// its end without occupying a thread. After the deletion, calls `reply` on the pool. Jobs and pool
// must outlive the call of `reply`.
void DeleteVideo(JobService& jobs, WorkerPool& pool,
                 const std::shared_ptr<const VideoExchange>& exchange, const HttpReply& reply);

}  // namespace wan::server
