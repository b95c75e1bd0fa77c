// The OpenAI video API: a thin translation of HTTP requests into calls of JobService, which pass
// the gatekeeper and the admission as those of gRPC do. docs/use/openai.md describes it to callers.
// The page that uses it passes them as well.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/worker_pool.h"
#include "server/http/browser_check.h"
#include "server/http/http_server.h"
#include "server/jobs/job_service.h"

namespace wan::server {

struct RouteMatch;
struct VideoExchange;

class VideoListing;

// Most bytes of a body: an image of 32 MiB in base64, and 512 KiB besides.
inline constexpr uint64_t kMaxVideoBodyBytes = (uint64_t{32} << 20) / 3 * 4 + (uint64_t{512} << 10);

// Told of every answer: the rule as VideoRoutes has it (empty if the path or header is none of the
// API's), the HTTP code, and the time since the request's header was read. Any thread; must not
// block.
using OnHttpAnswer = std::function<void(std::string_view route, int code, absl::Duration taken)>;

struct VideoApiOptions {
  // Which requests of web pages are let in, and whether GET / answers the page.
  BrowserRules browser;
  // The server's start, which is shown as the creation time of models.
  absl::Time start;
  Clock& clock = SystemClock();
  OnHttpAnswer on_answer = [](std::string_view, int, absl::Duration) {};
};

// Thread-safe. The arguments must outlive the object and every reply.
class VideoApi {
 public:
  VideoApi(JobService& jobs, const Gatekeeper& gatekeeper, Admission& admission, WorkerPool& pool,
           const VideoApiOptions& options)
      : jobs_(jobs),
        gatekeeper_(gatekeeper),
        admission_(admission),
        pool_(pool),
        options_(options) {}

  // For HttpServer::Start.
  HttpCallbacks Callbacks();

 private:
  // Enters a request and ensures that its answer is reported.
  HttpEntry Watch(const HttpHead& head);
  HttpEntry Enter(const HttpHead& head, const RouteMatch& match);
  // Counts the arrived bytes of a body, and the request once it is whole. Returns an answer if a
  // limit is exceeded.
  std::optional<HttpAnswer> Arrived(VideoExchange& exchange, uint64_t bytes, bool whole);
  // Counts an answer that is to be sent. Returns it, or another one that refuses it.
  HttpAnswer Counted(VideoExchange& exchange, HttpAnswer answer);
  // Works on a request that has its turn; may block.
  void Work(const std::shared_ptr<VideoExchange>& held, std::string body, const HttpReply& reply);
  void Create(const std::shared_ptr<VideoExchange>& held, std::string body, const HttpReply& reply);
  HttpAnswer Get(const VideoExchange& exchange);
  // Takes a step of a list, and posts the next one until it is complete.
  void List(const std::shared_ptr<VideoExchange>& exchange,
            const std::shared_ptr<VideoListing>& listing, const HttpReply& reply);
  HttpAnswer Models(const VideoExchange& exchange);
  HttpAnswer Model(const VideoExchange& exchange);

  JobService& jobs_;
  const Gatekeeper& gatekeeper_;
  Admission& admission_;
  WorkerPool& pool_;
  const VideoApiOptions options_;
};

}  // namespace wan::server
