// Answers downloads of a video's content, with ranges and entity tags.
#pragma once

#include "server/calls/admission.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Answers a request for the content of a video. The pool reads the file while the caller reads the
// answer, so admission and pool must outlive the answer. May block, because it opens the file.
HttpAnswer VideoContent(const VideoExchange& exchange, JobService& jobs, Admission& admission,
                        WorkerPool& pool);

}  // namespace wan::server
