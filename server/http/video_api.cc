#include "server/http/video_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/trace_context.h"
#include "server/http/api_answer.h"
#include "server/http/live_content.h"
#include "server/http/openapi.h"
#include "server/http/page.h"
#include "server/http/server_object.h"
#include "server/http/video_content.h"
#include "server/http/video_creation.h"
#include "server/http/video_deletion.h"
#include "server/http/video_events.h"
#include "server/http/video_exchange.h"
#include "server/http/video_id.h"
#include "server/http/video_listing.h"
#include "server/http/video_object.h"
#include "server/http/video_query.h"
#include "server/http/video_report.h"
#include "server/http/video_routes.h"

namespace wan::server {
namespace {

using nlohmann::json;

// Maximum number of bytes of the body of a request that needs no body.
constexpr uint64_t kMaxNeedlessBodyBytes = uint64_t{64} << 10;
// A body of which fewer bytes than this have arrived takes nothing from the budgets; the limit of
// connections bounds the sum of these bytes.
constexpr uint64_t kFirstBytes = uint64_t{16} << 10;

absl::Status VideoNotFound(std::string_view id) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no video '", std::string(id.substr(0, 100)), "'")),
      kReasonJobNotFound);
}

void AppendTo(std::string* text, std::string_view piece) { text->append(piece); }

}  // namespace

HttpCallbacks VideoApi::Callbacks() {
  return {[this](const HttpHead& head) { return Watch(head); },
          [this](int status, std::string_view message) {
            options_.on_answer("", status, absl::ZeroDuration());
            return ErrorAnswer(status, "malformed_request", message);
          }};
}

HttpEntry VideoApi::Watch(const HttpHead& head) {
  const RouteMatch match = FindVideoRoute(head.method, head.path, Routes());
  const std::string_view rule = match.route == nullptr ? std::string_view() : match.route->rule;
  const auto tell = [this, rule, began = options_.clock.MonotonicNanos()](int code) {
    options_.on_answer(rule, code, absl::Nanoseconds(options_.clock.MonotonicNanos() - began));
  };
  HttpEntry entry;
  entry.refusal = cross_origin_.Preflight(head, match.methods);
  if (!entry.refusal.has_value()) entry = Enter(head, match);
  if (entry.refusal.has_value()) {
    cross_origin_.AddTo(*entry.refusal, head);
    tell(entry.refusal->status);
  } else {
    if (entry.arrived) {
      entry.arrived = [this, head, arrived = std::move(entry.arrived), tell](uint64_t bytes,
                                                                             bool whole) {
        std::optional<HttpAnswer> refusal = arrived(bytes, whole);
        if (refusal.has_value()) {
          cross_origin_.AddTo(*refusal, head);
          tell(refusal->status);
        }
        return refusal;
      };
    }
    entry.work = [this, head, work = std::move(entry.work), tell](
                     std::string body, const HttpReply& reply, HttpCallerGone gone) {
      work(
          std::move(body),
          [this, head, tell, reply](HttpAnswer answer) {
            cross_origin_.AddTo(answer, head);
            tell(answer.status);
            reply(std::move(answer));
          },
          std::move(gone));
    };
  }
  return entry;
}

namespace {

HttpAnswer UnknownUrl(const HttpHead& head, const OptionalRoutes& routes) {
  return ErrorAnswer(
      404, "unknown_url",
      absl::StrCat("there is no ", head.path.substr(0, 200), " on this server; it has ",
                   absl::StrJoin(VideoRoutes(routes), ", ", AppendTo)));
}

HttpAnswer WrongMethod(const HttpHead& head, const RouteMatch& match) {
  const std::string methods = absl::StrJoin(match.methods, ", ", AppendTo);
  HttpAnswer answer =
      ErrorAnswer(405, "method_not_allowed",
                  absl::StrCat(head.path.substr(0, 200), " takes ", methods, " only"));
  answer.fields.emplace_back("Allow", methods);
  return answer;
}

}  // namespace

HttpEntry VideoApi::Enter(const HttpHead& head, const RouteMatch& match) {
  HttpEntry entry;
  if (const absl::Status status = CheckBrowser(head, options_.browser); !status.ok()) {
    entry.refusal = ErrorAnswer(status);
    return entry;
  }
  const VideoRoute* const route = match.route;
  if (route == nullptr) {
    entry.refusal = match.methods.empty() ? UnknownUrl(head, Routes()) : WrongMethod(head, match);
    return entry;
  }

  Presented presented;
  presented.authorization = head.All("authorization");
  presented.certificate_subject = head.certificate_subject;
  absl::StatusOr<std::shared_ptr<Call>> call = gatekeeper_.Enter(presented, head.peer, route->rule);
  if (!call.ok()) {
    entry.refusal = ErrorAnswer(call.status());
    return entry;
  }
  (*call)->SetTrace(ParseTraceContext(head.All("traceparent"), head.All("tracestate")));
  auto exchange = std::make_shared<VideoExchange>();
  exchange->action = route->action;
  exchange->head = head;
  exchange->id = match.id;
  exchange->call = *std::move(call);
  if (!exchange->id.empty() && route->action != VideoAction::kModel) {
    const std::optional<std::string> job = JobNameOf(exchange->id);
    if (!job.has_value()) {
      entry.refusal = exchange->Failed(VideoNotFound(exchange->id));
      return entry;
    }
    exchange->job = *job;
    exchange->call->About(*job);
  }
  const bool describes =
      route->action == VideoAction::kCreate || route->action == VideoAction::kQuote;
  exchange->most_bytes = describes ? kMaxVideoBodyBytes : kMaxNeedlessBodyBytes;
  if (head.body_bytes.value_or(0) > exchange->most_bytes) {
    entry.refusal = exchange->TooLarge(absl::StrCat(*head.body_bytes));
    return entry;
  }
  entry.arrived = [this, exchange](uint64_t bytes, bool whole) {
    return Arrived(*exchange, bytes, whole);
  };
  entry.work = [this, exchange](std::string body, const HttpReply& send, HttpCallerGone gone) {
    HttpReply reply = [this, exchange, send](HttpAnswer answer) {
      send(Counted(*exchange, std::move(answer)));
    };
    // The body is in a shared_ptr, because tasks are copyable and share it.
    auto held = std::make_shared<std::string>(std::move(body));
    exchange->gone = std::move(gone);
    const Call& entered = *exchange->call;
    pool_.Post(entered.work(), entered.party(), exchange->gone,
               [this, exchange, held, reply = std::move(reply)](const absl::Status& turn) {
                 turn.ok() ? Work(exchange, std::move(*held), reply)
                           : reply(exchange->Failed(turn));
               });
  };
  return entry;
}

std::optional<HttpAnswer> VideoApi::Arrived(VideoExchange& exchange, uint64_t bytes, bool whole) {
  if (bytes > exchange.most_bytes) {
    return exchange.TooLarge(absl::StrCat("more than ", exchange.most_bytes));
  }
  if (!whole && bytes <= kFirstBytes) return std::nullopt;
  const auto counted = static_cast<int64_t>(bytes);
  absl::StatusOr<Admission::Lease> place =
      whole ? admission_.Request(exchange.party(), counted, exchange.call->effect(),
                                 std::move(exchange.place))
            : admission_.Arriving(exchange.party(), counted, std::move(exchange.place));
  if (!place.ok()) return exchange.Failed(place.status());
  exchange.place = *std::move(place);
  return std::nullopt;
}

HttpAnswer VideoApi::Counted(VideoExchange& exchange, HttpAnswer answer) {
  Admission::Lease request = std::move(exchange.place);
  if (answer.next_piece) return answer;  // the answer was admitted as a download
  absl::StatusOr<Admission::Lease> place =
      admission_.Answer(std::move(request), static_cast<int64_t>(answer.body.size()));
  if (!place.ok()) return ErrorAnswer(place.status());
  answer.place = *std::move(place);
  return answer;
}

void VideoApi::Work(const std::shared_ptr<VideoExchange>& held, std::string body,
                    const HttpReply& reply) {
  VideoExchange& exchange = *held;
  if (!exchange.job.empty()) {
    if (const absl::Status status = exchange.call->CheckResource(); !status.ok()) {
      reply(exchange.Failed(status));
      return;
    }
  }
  switch (exchange.action) {
    case VideoAction::kPage:
      exchange.call->End(absl::OkStatus()).IgnoreError();
      reply(PageAnswer(exchange.head));
      return;
    case VideoAction::kHealth:
      reply(Health(exchange));
      return;
    case VideoAction::kOpenApi:
      exchange.call->End(absl::OkStatus()).IgnoreError();
      reply(OpenApiAnswer(Routes()));
      return;
    case VideoAction::kServer:
      reply(exchange.Done(ServerObject(description_.Info(exchange.call->VisibleOwner()),
                                       jobs_.models().List(), description_.devices().Sample())));
      return;
    case VideoAction::kQuote:
      reply(QuoteVideo(jobs_, exchange, std::move(body)));
      return;
    case VideoAction::kCreate:
      CreateVideo(jobs_, pool_, held, std::move(body), reply);
      return;
    case VideoAction::kList:
      List(held,
           std::make_shared<VideoListing>(jobs_, exchange.call->VisibleOwner(),
                                          std::string(exchange.head.query)),
           reply);
      return;
    case VideoAction::kGet:
      reply(Get(exchange));
      return;
    case VideoAction::kEvents:
      reply(VideoEvents(
          held, {jobs_, admission_, pool_, {options_.clock, timer_, options_.heartbeat_interval}}));
      return;
    case VideoAction::kReport:
      reply(VideoReport(exchange, jobs_));
      return;
    case VideoAction::kContent:
      Content(held, reply);
      return;
    case VideoAction::kDelete:
      DeleteVideo(jobs_, pool_, held, reply);
      return;
    case VideoAction::kModels:
      reply(Models(exchange));
      return;
    case VideoAction::kModel:
      reply(Model(exchange));
      return;
  }
}

void VideoApi::Content(const std::shared_ptr<VideoExchange>& held, const HttpReply& reply) {
  const auto kept = [this, held, reply] {
    AnswerContent({jobs_, admission_, pool_, pictures_}, held, reply);
  };
  const absl::StatusOr<ContentVariant> variant = ParseContentQuery(held->head.query);
  if (!variant.ok() || *variant != ContentVariant::kLive) return kept();
  AnswerLiveContent({jobs_, admission_, pool_, options_.clock, timer_}, held, reply, kept);
}

HttpAnswer VideoApi::Get(const VideoExchange& exchange) {
  const absl::StatusOr<wan::v1::Job> job = jobs_.Get(exchange.job);
  return job.ok() ? exchange.Done(VideoOf(*job)) : exchange.Failed(job.status());
}

void VideoApi::List(const std::shared_ptr<VideoExchange>& exchange,
                    const std::shared_ptr<VideoListing>& listing, const HttpReply& reply) {
  const absl::StatusOr<bool> complete = listing->Step();
  if (!complete.ok()) return reply(exchange->Failed(complete.status()));
  if (*complete) {
    exchange->call->End(absl::OkStatus()).IgnoreError();
    return reply(JsonTextAnswer(200, listing->Take()));
  }
  const Call& call = *exchange->call;
  pool_.PostNext(call.work(), call.party(), exchange->gone,
                 [this, exchange, listing, reply](const absl::Status& turn) {
                   turn.ok() ? List(exchange, listing, reply) : reply(exchange->Failed(turn));
                 });
}

HttpAnswer VideoApi::Health(const VideoExchange& exchange) {
  exchange.call->End(absl::OkStatus()).IgnoreError();
  HttpAnswer answer = description_.NotServing().empty()
                          ? JsonAnswer(200, {{"status", "ok"}})
                          : JsonAnswer(503, {{"status", "unavailable"}});
  answer.fields.emplace_back("Cache-Control", "no-store");
  return answer;
}

HttpAnswer VideoApi::Models(const VideoExchange& exchange) {
  json data = json::array();
  for (const wan::v1::Model& model : jobs_.models().List()) {
    if (model.state() != wan::v1::MODEL_STATE_READY) continue;
    data.push_back(ModelObject(BareModelName(model.name()), options_.start));
  }
  return exchange.Done({{"object", "list"}, {"data", std::move(data)}});
}

HttpAnswer VideoApi::Model(const VideoExchange& exchange) {
  if (jobs_.models().IsReady(exchange.id)) {
    return exchange.Done(ModelObject(exchange.id, options_.start));
  }
  return exchange.Failed(
      WithReason(absl::NotFoundError(absl::StrCat("no model '", exchange.id.substr(0, 100),
                                                  "' is ready; GET /v1/models lists those that "
                                                  "are")),
                 kReasonModelNotFound));
}

}  // namespace wan::server
