// Serves the OpenAI video API: translates HTTP requests into calls of JobService, which pass the
// gatekeeper and the admission as gRPC's calls do. docs/use/openai.md describes the API to callers.
// Requests of the page for browsers pass them as well.
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
#include "server/calls/wake_timer.h"
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

// Receives every answer: the rule as VideoRoutes has it (empty if the path or header is not the
// API's), the HTTP status, and the time since the request's header was read. It is called on any
// thread and must not block.
using OnHttpAnswer = std::function<void(std::string_view route, int code, absl::Duration taken)>;

struct VideoApiOptions {
  // Say which requests of web pages are let in, and whether GET / answers with the page.
  BrowserRules browser;
  // When the server started; clients see this as the time at which models were created.
  absl::Time start;
  Clock& clock = SystemClock();
  // A stream of events gets a heartbeat after this time without an event; zero: never.
  absl::Duration heartbeat_interval;
  OnHttpAnswer on_answer = [](std::string_view, int, absl::Duration) {};
};

// Thread-safe. The arguments must outlive the object and every HttpReply.
class VideoApi {
 public:
  VideoApi(JobService& jobs, const Gatekeeper& gatekeeper, Admission& admission, WorkerPool& pool,
           const VideoApiOptions& options)
      : jobs_(jobs),
        gatekeeper_(gatekeeper),
        admission_(admission),
        pool_(pool),
        options_(options),
        timer_(options_.clock) {}

  // Returns the callbacks for HttpServer::Start.
  HttpCallbacks Callbacks();

 private:
  // Enters a request, and makes sure that its answer is reported.
  HttpEntry Watch(const HttpHead& head);
  HttpEntry Enter(const HttpHead& head, const RouteMatch& match);
  // Counts the bytes of a body that have arrived, and counts the request when it is whole. Returns
  // an answer if a limit is exceeded; otherwise nothing.
  std::optional<HttpAnswer> Arrived(VideoExchange& exchange, uint64_t bytes, bool whole);
  // Counts the bytes of an answer that is to be sent. Returns the answer, or another one that
  // refuses to send it.
  HttpAnswer Counted(VideoExchange& exchange, HttpAnswer answer);
  // Does the work of a request when it has its turn; may block.
  void Work(const std::shared_ptr<VideoExchange>& held, std::string body, const HttpReply& reply);
  void Create(const std::shared_ptr<VideoExchange>& held, std::string body, const HttpReply& reply);
  HttpAnswer Get(const VideoExchange& exchange);
  // Makes one step of a list; posts the next step, or answers if the list is complete.
  void List(const std::shared_ptr<VideoExchange>& exchange,
            const std::shared_ptr<VideoListing>& listing, const HttpReply& reply);
  HttpAnswer Models(const VideoExchange& exchange);
  HttpAnswer Model(const VideoExchange& exchange);

  JobService& jobs_;
  const Gatekeeper& gatekeeper_;
  Admission& admission_;
  WorkerPool& pool_;
  const VideoApiOptions options_;
  WakeTimer timer_;  // wakes watchers for heartbeats
};

}  // namespace wan::server
