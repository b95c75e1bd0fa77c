// Deletes a video, even one that is still being made.
#pragma once

#include <memory>

#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Deletes the exchange's video. If it has not ended, cancels it and waits for its end
// asynchronously. Then calls `reply` on the pool. Jobs and pool must outlive the reply.
void DeleteVideo(JobService& jobs, WorkerPool& pool,
                 const std::shared_ptr<const VideoExchange>& exchange, const HttpReply& reply);

}  // namespace wan::server
