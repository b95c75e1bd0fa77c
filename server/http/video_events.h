// Sends a video's events to a watcher, as a stream of server-sent events (text/event-stream).
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "server/calls/admission.h"
#include "server/calls/stream_heartbeat.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// Objects that all streams use; they must outlive the streams.
struct VideoEventParts {
  JobService& jobs;
  Admission& admission;
  WorkerPool& pool;
  HeartbeatOptions heartbeat;
};

// Answers a request for the events of a video (docs/use/openai.md). If the request names no
// sequence to continue after, the stream begins with the current state. The stream has one piece in
// flight at a time, so a slow reader costs the memory of one piece; between events the stream uses
// no thread. The stream ends with the job, and when the server stops. May block, because
// VideoEvents reads the job.
HttpAnswer VideoEvents(const std::shared_ptr<VideoExchange>& exchange,
                       const VideoEventParts& parts);

}  // namespace wan::server
