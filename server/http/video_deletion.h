// The end of a video: a DELETE also of one that is still being made.
#pragma once

#include <memory>

#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Deletes the video that the exchange names; cancels it first if it has not ended, and waits for
// its end without a thread. Then calls `reply`, on the pool. Jobs and pool must outlive the reply.
void DeleteVideo(JobService& jobs, WorkerPool& pool,
                 const std::shared_ptr<const VideoExchange>& exchange, const HttpReply& reply);

}  // namespace wan::server
