#include "server/http/video_creation.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/errors.h"
#include "server/calls/call_work.h"
#include "server/conversion/convert.h"
#include "server/http/field_names.h"
#include "server/http/form.h"
#include "server/http/video_object.h"
#include "server/http/video_request.h"

namespace wan::server {
namespace {

using nlohmann::json;

// Returns the model of this name, or the only one if the name is empty.
absl::StatusOr<wan::v1::Model> FindModelOf(const ModelTable& models, std::string_view name) {
  if (!name.empty()) return models.Get(name);
  std::vector<wan::v1::Model> all = models.List();
  if (all.size() != 1) return absl::NotFoundError("the server has several models, or none");
  return std::move(all.front());
}

absl::StatusOr<wan::v1::GenerationRequest> RequestOf(JobService& jobs,
                                                     const VideoExchange& exchange,
                                                     std::string body) {
  absl::StatusOr<Form> form = ParseForm(exchange.head.First("content-type"), std::move(body));
  if (!form.ok()) return form.status();
  const std::vector<std::string_view> keys = exchange.head.All("idempotency-key");
  if (keys.size() > 1) {
    return InvalidFields({{"Idempotency-Key", "is given twice; give it once"}});
  }
  return ToGenerationRequest(
      *std::move(form), keys.empty() ? std::nullopt : std::optional(keys.front()),
      [&jobs](std::string_view name) { return FindModelOf(jobs.models(), name); });
}

json EstimateOf(bool known, const wan::v1::TimeEstimate& estimate) {
  if (!known) return nullptr;
  return {{"p50", estimate.p50_seconds()}, {"p90", estimate.p90_seconds()}};
}

json QuoteOf(const wan::v1::QuoteResponse& quote) {
  json shown = ShapeOf(quote.request());
  shown.update(
      {{"object", "video.quote"},
       {"model", quote.request().model()},
       {"quality", std::string(QualityOf(quote.request()))},
       {"steps", quote.steps()},
       {"seconds", EstimateOf(quote.has_warm_time(), quote.warm_time())},
       {"seconds_with_loading", EstimateOf(quote.has_cold_time(), quote.cold_time())},
       {"queue",
        {{"jobs_ahead", quote.jobs_ahead()},
         {"seconds", EstimateOf(quote.has_queue_time(), quote.queue_time())}}},
       {"device_memory_bytes",
        quote.has_device_memory_bytes() ? json(quote.device_memory_bytes()) : json(nullptr)},
       {"host_memory_bytes",
        quote.has_host_memory_bytes() ? json(quote.host_memory_bytes()) : json(nullptr)}});
  return shown;
}

}  // namespace

void CreateVideo(JobService& jobs, WorkerPool& pool, const std::shared_ptr<VideoExchange>& exchange,
                 std::string body, const HttpReply& reply) {
  absl::StatusOr<wan::v1::GenerationRequest> request = RequestOf(jobs, *exchange, std::move(body));
  if (!request.ok()) return reply(exchange->Failed(request.status()));
  const std::shared_ptr<Call>& call = exchange->call;
  jobs.Create(
      std::make_shared<const wan::v1::GenerationRequest>(*std::move(request)),
      {/*tied=*/false, call->caller().name, call->trace(), DecodingOf(pool, call, exchange->gone),
       call->ReadsAll()},
      PostOf(pool, call),
      [&pool, exchange, reply, kept = pool.Keep()](absl::StatusOr<JobService::Created> created) {
        PostAnswer(pool, *exchange->call, [exchange, reply, created = std::move(created)] {
          if (!created.ok()) return reply(exchange->Failed(created.status(), HttpFieldOf));
          exchange->call->About(created->job.name());
          reply(exchange->Done(VideoOf(created->job)));
        });
      });
}

HttpAnswer QuoteVideo(JobService& jobs, const VideoExchange& exchange, std::string body) {
  absl::StatusOr<wan::v1::GenerationRequest> request = RequestOf(jobs, exchange, std::move(body));
  if (!request.ok()) return exchange.Failed(request.status());
  wan::v1::QuoteRequest asked;
  *asked.mutable_request() = *std::move(request);
  const absl::StatusOr<wan::v1::QuoteResponse> quote =
      jobs.Quote(asked, {exchange.call->caller().name, exchange.call->ReadsAll()});
  if (!quote.ok()) return exchange.Failed(quote.status(), HttpFieldOf);
  return exchange.Done(QuoteOf(*quote));
}

}  // namespace wan::server
