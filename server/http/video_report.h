// Answers requests for the report of a video's job, in the formats of `wanctl report`.
#pragma once

#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Returns the report of the job's latest attempt, even while the attempt runs. May block, because
// the function reads the report from the store.
HttpAnswer VideoReport(const VideoExchange& exchange, const JobService& jobs);

}  // namespace wan::server
