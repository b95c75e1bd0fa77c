// Serves the OpenAI video API: translates HTTP requests into calls of JobService, which pass the
// gatekeeper and the admission as gRPC's calls do. docs/use/openai.md describes the API to callers.
// Requests of the page for browsers pass the same checks.
#pragma once

#include <cstddef>
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
#include "server/calls/server_description.h"
#include "server/calls/wake_timer.h"
#include "server/calls/worker_pool.h"
#include "server/http/browser_check.h"
#include "server/http/cross_origin.h"
#include "server/http/http_server.h"
#include "server/http/video_picture.h"
#include "server/http/video_routes.h"
#include "server/jobs/job_service.h"

namespace wan::server {

struct VideoExchange;

class VideoListing;

// Maximum number of bytes of a body: an image of 32 MiB in base64, and 512 KiB besides.
inline constexpr uint64_t kMaxVideoBodyBytes = (uint64_t{32} << 20) / 3 * 4 + (uint64_t{512} << 10);

// Maximum number of bytes of thumbnails and sprite sheets in the cache.
inline constexpr size_t kPictureBytes = size_t{16} << 20;

// VideoApi calls OnHttpAnswer with every answer: the route as in VideoRoutes (empty if the path or
// header is not the API's), the HTTP status, and the time since the request's header was read. The
// call comes on any thread; the function must not block.
using OnHttpAnswer = std::function<void(std::string_view route, int code, absl::Duration taken)>;

struct VideoApiOptions {
  // Which requests of web pages the server lets in, and whether GET / answers with the page.
  BrowserRules browser;
  // When the server started; clients see this time as the creation time of models.
  absl::Time start;
  Clock& clock = SystemClock();
  // A stream of events gets a heartbeat after this time without an event; zero: never.
  absl::Duration heartbeat_interval;
  // Whether the server answers GET /health.
  bool health = true;
  OnHttpAnswer on_answer = [](std::string_view, int, absl::Duration) {};
};

// Thread-safe. The arguments must outlive the object and every HttpReply.
class VideoApi {
 public:
  VideoApi(JobService& jobs, const ServerDescription& description, const Gatekeeper& gatekeeper,
           Admission& admission, WorkerPool& pool, const VideoApiOptions& options)
      : jobs_(jobs),
        description_(description),
        gatekeeper_(gatekeeper),
        admission_(admission),
        pool_(pool),
        options_(options),
        cross_origin_(options.browser.origins),
        timer_(options_.clock) {}

  // Returns the callbacks for HttpServer::Start.
  HttpCallbacks Callbacks();

 private:
  // Enters a request, and makes sure that its answer is reported.
  HttpEntry Watch(const HttpHead& head);
  HttpEntry Enter(const HttpHead& head, const RouteMatch& match);
  // Counts the body's bytes as they arrive, and counts the request when it is whole. Returns an
  // answer if a limit is exceeded; otherwise nothing.
  std::optional<HttpAnswer> Arrived(VideoExchange& exchange, uint64_t bytes, bool whole);
  // Counts the bytes of an answer that is to be sent. Returns the answer, or a refusal if the
  // answer exceeds a limit.
  HttpAnswer Counted(VideoExchange& exchange, HttpAnswer answer);
  // Does the work of a request when it has its turn; may block.
  void Work(const std::shared_ptr<VideoExchange>& held, std::string body, const HttpReply& reply);
  void Content(const std::shared_ptr<VideoExchange>& held, const HttpReply& reply);
  HttpAnswer Get(const VideoExchange& exchange);
  // Makes one step of a list; posts the next step, or answers if the list is complete.
  void List(const std::shared_ptr<VideoExchange>& exchange,
            const std::shared_ptr<VideoListing>& listing, const HttpReply& reply);
  HttpAnswer Health(const VideoExchange& exchange);
  HttpAnswer Models(const VideoExchange& exchange);
  HttpAnswer Model(const VideoExchange& exchange);

  OptionalRoutes Routes() const { return {options_.browser.page, options_.health}; }

  JobService& jobs_;
  const ServerDescription& description_;
  const Gatekeeper& gatekeeper_;
  Admission& admission_;
  WorkerPool& pool_;
  const VideoApiOptions options_;
  const CrossOrigin cross_origin_;
  PictureCache pictures_{kPictureBytes};
  WakeTimer timer_;  // wakes watchers for heartbeats, and requests that wait for their video
};

}  // namespace wan::server
