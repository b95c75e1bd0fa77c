// Answers downloads of a video's content, with ranges and entity tags, and of its pictures.
#pragma once

#include <memory>

#include "server/calls/admission.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_exchange.h"
#include "server/http/video_picture.h"
#include "server/jobs/job_service.h"

namespace wan::server {

// The referenced objects must outlive every answer.
struct VideoContentParts {
  JobService& jobs;
  Admission& admission;
  WorkerPool& pool;
  PictureCache& pictures;
};

// Answers a request for the content of a video: the video's file, which the pool reads while the
// caller reads the answer, or a picture of its frames. May block, because AnswerContent opens the
// file.
void AnswerContent(const VideoContentParts& parts, const std::shared_ptr<VideoExchange>& exchange,
                   const HttpReply& reply);

}  // namespace wan::server
