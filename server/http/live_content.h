// Answers requests for a video while it is made.
#pragma once

#include <functional>
#include <memory>

#include "engine/api/clock.h"
#include "server/calls/admission.h"
#include "server/calls/wake_timer.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/jobs/job_service.h"

namespace wan::server {

struct LiveContentParts {
  JobService& jobs;
  Admission& admission;
  WorkerPool& pool;
  Clock& clock;
  WakeTimer& timer;
};

// Waits until the video's job decodes, and then answers with the stream of its fragments, which
// ends with the job; the answer is cut off if the attempt ends otherwise. If the job has ended
// before, calls `kept`, which must answer. All parts must outlive the answer. May block; call
// AnswerLiveContent when the request has its turn.
void AnswerLiveContent(const LiveContentParts& parts, std::shared_ptr<const VideoExchange> exchange,
                       const HttpReply& reply, std::function<void()> kept);

}  // namespace wan::server
