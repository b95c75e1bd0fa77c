// Traces of a whole server, as a collector receives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/video_client.h"
#include "server/conversion/convert.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/server/tracing/received_spans.h"
#include "tests/support/http_get.h"

namespace wan::server {
namespace {

using support::Named;
using support::ReceivedSpan;
using support::SpansOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kCaller[] = "b7ad6b7169203331";
constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kUnsampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

using Metadata = std::vector<std::pair<std::string, std::string>>;

class TracingServerTest : public ServerTest {
 protected:
  ServerConfig TracingConfig() const {
    ServerConfig config = DefaultConfig();
    config.otlp_endpoint = receiver_.Url("");
    config.shutdown_mode = StopMode::kRequeue;
    return config;
  }

  wan::v1::Job Create(const Metadata& metadata,
                      const wan::v1::GenerationRequest& request = SmallRequest()) {
    grpc::ClientContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = request;
    wan::v1::Job job;
    const grpc::Status status = video_->CreateJob(&context, create, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }

  wan::v1::JobReport ReportOf(const std::string& job) {
    grpc::ClientContext context;
    wan::v1::GetReportRequest request;
    request.set_job(job);
    wan::v1::JobReport report;
    EXPECT_TRUE(video_->GetReport(&context, request, &report).ok());
    return report;
  }

  // All spans that the server has made; it is stopped, which sends them. Time stands still, so that
  // the exporter does not give up.
  std::vector<ReceivedSpan> AllSpans() {
    StopServer();
    return SpansOf(receiver_.Await(0));
  }

  std::string Metrics() {
    const HostPort address = server_->metrics_address();
    const auto scraped = support::HttpGet(address.host, address.port, "/metrics");
    return scraped.ok() ? scraped->body : std::string(scraped.status().message());
  }

  support::HttpReceiver receiver_;
};

TEST_F(TracingServerTest, TheSpansAreTheReportsStages) {
  engine_.TakeTime("Step_Inference", absl::Seconds(2));
  engine_.TakeTime("VAE_Decoding", absl::Seconds(3));
  StartServing(TracingConfig());
  wan::v1::GenerationRequest request = SmallRequest();
  (*request.mutable_labels())["customer"] = "acme";
  const wan::v1::Job job = AwaitEnd(
      Create({{"traceparent", kParent}, {"tracestate", "a=1"}, {"tracestate", "b=2"}}, request)
          .name());
  EXPECT_EQ(job.trace().trace_id(), kTraceId);
  EXPECT_EQ(job.trace().parent_span_id(), kCaller);
  const wan::v1::JobReport report = ReportOf(job.name());
  const std::vector<ReceivedSpan> spans = AllSpans();

  const auto roots = Named(spans, "generate m");
  ASSERT_THAT(roots, SizeIs(1));
  EXPECT_EQ(roots[0].parent_span_id, kCaller);
  EXPECT_EQ(roots[0].kind, 2);
  EXPECT_EQ(roots[0].start_nanos, absl::ToUnixNanos(ToTime(job.create_time())));
  EXPECT_EQ(roots[0].end_nanos, absl::ToUnixNanos(ToTime(job.end_time())));
  EXPECT_EQ(roots[0].attributes.at("wan.job"), job.name());
  EXPECT_EQ(roots[0].attributes.at("wan.state"), "JOB_STATE_COMPLETED");
  EXPECT_EQ(roots[0].attributes.at("wan.width"), "64");
  EXPECT_EQ(roots[0].attributes.at("wan.seed"), absl::StrCat(job.request().seed()));
  EXPECT_FALSE(roots[0].failed);
  const auto attempts = Named(spans, "Total_Execution");
  ASSERT_THAT(attempts, SizeIs(1));
  EXPECT_EQ(attempts[0].parent_span_id, roots[0].span_id);

  std::set<std::string> ids;
  for (const ReceivedSpan& span : spans) {
    EXPECT_EQ(span.trace_id, kTraceId) << span.name;
    EXPECT_EQ(span.tracestate, "a=1,b=2") << span.name;
    EXPECT_TRUE(ids.insert(span.span_id).second) << span.name;
  }
  EXPECT_EQ(spans.size(), static_cast<size_t>(report.stages_size()) + 1);
  for (const wan::v1::StageReport& stage : report.stages()) {
    const auto found = Named(spans, stage.stage());
    ASSERT_THAT(found, SizeIs(1)) << stage.stage();
    EXPECT_EQ(found[0].start_nanos, absl::ToUnixNanos(ToTime(stage.start_time())));
    EXPECT_EQ(found[0].end_nanos - found[0].start_nanos,
              absl::ToInt64Nanoseconds(absl::Seconds(stage.seconds())))
        << stage.stage();
    if (stage.stage() == "Total_Execution") continue;
    EXPECT_EQ(found[0].parent_span_id,
              stage.stage() == "Queue_Wait" ? roots[0].span_id : attempts[0].span_id)
        << stage.stage();
  }
  for (const auto& post : receiver_.Await(1)) {
    EXPECT_EQ(post.path, "/v1/traces");
    EXPECT_THAT(post.body, Not(HasSubstr(request.prompt())));
    EXPECT_THAT(post.body, Not(HasSubstr("acme")));
  }
}

TEST_F(TracingServerTest, EveryDoorTakesTheCallersTrace) {
  ServerConfig config = TracingConfig();
  config.http_listen = HostPort{"127.0.0.1", 0};
  StartServing(config);
  Create({{"traceparent", kParent}});
  {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", kParent);
    wan::v1::SubmitBatchRequest batch;
    *batch.add_requests() = SmallRequest();
    *batch.add_requests() = SmallRequest();
    wan::v1::SubmitBatchResponse response;
    ASSERT_TRUE(video_->SubmitBatch(&context, batch, &response).ok());
  }
  {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", kParent);
    wan::v1::GenerateRequest generate;
    *generate.mutable_request() = SmallRequest();
    const auto stream = video_->Generate(&context, generate);
    wan::v1::Event event;
    while (stream->Read(&event)) {
    }
    ASSERT_TRUE(stream->Finish().ok());
  }
  const auto posted =
      support::AskHttp(server_->http_address()->port,
                       {"POST",
                        "/v1/videos",
                        {{"Content-Type", "application/json"}, {"traceparent", kParent}},
                        R"({"model": "m", "prompt": "a cat"})"});
  ASSERT_TRUE(posted.ok());
  ASSERT_EQ(posted->status, 200) << posted->body;
  grpc::ClientContext context;
  wan::v1::ListJobsResponse listed;
  ASSERT_TRUE(video_->ListJobs(&context, {}, &listed).ok());
  ASSERT_THAT(listed.jobs(), SizeIs(5));
  for (const wan::v1::Job& job : listed.jobs()) AwaitEnd(job.name());
  const auto roots = Named(AllSpans(), "generate m");
  EXPECT_THAT(roots, SizeIs(5));
  for (const ReceivedSpan& root : roots) {
    EXPECT_EQ(root.trace_id, kTraceId);
    EXPECT_EQ(root.parent_span_id, kCaller);
  }
}

TEST_F(TracingServerTest, TheClientLibraryPassesATraceOn) {
  StartServing(TracingConfig());
  client::ConnectionOptions options;
  options.server = ToString(server_->grpc_address());
  options.traceparent = kParent;
  options.tracestate = "a=1";
  const client::Connection traced(options);
  const auto job = client::VideoClient(traced).CreateJob(SmallRequest());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->trace().parent_span_id(), kCaller);
  EXPECT_EQ(job->trace().tracestate(), "a=1");
  // gRPC would end the process over such a value.
  options.traceparent = "00-\n";
  const client::Connection broken(options);
  EXPECT_TRUE(client::VideoClient(broken).CreateJob(SmallRequest()).ok());
}

TEST_F(TracingServerTest, WithoutAValidParentEachJobHasATraceOfItsOwn) {
  StartServing(TracingConfig());
  std::set<std::string> traces;
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"traceparent", "00-1-2-01"}, {"tracestate", "a=1"}},
        Metadata{{"traceparent", kParent}, {"traceparent", kParent}}}) {
    const wan::v1::Job job = AwaitEnd(Create(metadata).name());
    EXPECT_THAT(job.trace().trace_id(), SizeIs(32));
    EXPECT_THAT(job.trace().parent_span_id(), IsEmpty());
    EXPECT_THAT(job.trace().tracestate(), IsEmpty());
    traces.insert(job.trace().trace_id());
  }
  EXPECT_THAT(traces, SizeIs(3));
  for (const ReceivedSpan& root : Named(AllSpans(), "generate m")) {
    EXPECT_THAT(root.parent_span_id, IsEmpty());
    EXPECT_EQ(traces.erase(root.trace_id), 1u);
  }
  EXPECT_THAT(traces, IsEmpty());
}

TEST_F(TracingServerTest, TheCallerOrElseTheRatioDecidesWhatIsSampled) {
  ServerConfig config = TracingConfig();
  config.otlp_sampling_ratio = 0;
  StartServing(config);
  AwaitEnd(Create({{"traceparent", kUnsampled}}).name());
  AwaitEnd(Create({}).name());
  const std::string sampled = AwaitEnd(Create({{"traceparent", kParent}}).name()).name();
  const auto spans = AllSpans();
  ASSERT_THAT(spans, Not(IsEmpty()));
  const auto roots = Named(spans, "generate m");
  ASSERT_THAT(roots, SizeIs(1));
  EXPECT_EQ(roots[0].attributes.at("wan.job"), sampled);
  EXPECT_THAT(Named(spans, "Total_Execution"), SizeIs(1));
}

TEST_F(TracingServerTest, FailuresAndCancelsAreTold) {
  StartServing(TracingConfig());
  engine_.FailAt("VAE_Decoding", absl::InternalError("broken"));
  AwaitEnd(Create({}).name());
  engine_.Hold("T5_Encoding");
  const std::string running = Create({}).name();
  const std::string waiting = Create({}).name();
  engine_.AwaitHeld("T5_Encoding");
  for (const std::string& job : {waiting, running}) {
    grpc::ClientContext context;
    wan::v1::CancelJobRequest cancel;
    cancel.set_name(job);
    wan::v1::Job cancelled;
    ASSERT_TRUE(video_->CancelJob(&context, cancel, &cancelled).ok());
  }
  AwaitEnd(running);
  engine_.Release("T5_Encoding");
  const auto spans = AllSpans();
  const auto decoding = Named(spans, "VAE_Decoding");
  ASSERT_THAT(decoding, SizeIs(1));
  EXPECT_TRUE(decoding[0].failed);
  EXPECT_THAT(decoding[0].problem, HasSubstr("broken"));
  EXPECT_EQ(decoding[0].attributes.at("error.type"), "INTERNAL");
  const auto attempts = Named(spans, "Total_Execution");
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_TRUE(attempts[0].failed);
  EXPECT_FALSE(attempts[1].failed);
  EXPECT_EQ(attempts[1].attributes.at("wan.stopped"), "true");
  int failed = 0;
  for (const ReceivedSpan& root : Named(spans, "generate m")) {
    failed += root.failed ? 1 : 0;
    EXPECT_EQ(root.failed, root.attributes.at("wan.state") == "JOB_STATE_FAILED");
    EXPECT_EQ(root.attributes.contains("error.type"), root.failed);
    EXPECT_EQ(root.attributes.at("wan.attempts") == "0", root.attributes.at("wan.job") == waiting);
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(TracingServerTest, AnAttemptThatTheServersStopEndedIsLinked) {
  StartServing(TracingConfig());
  engine_.Hold("Step_2_Inference");
  const std::string job = Create({{"traceparent", kParent}}).name();
  engine_.AwaitHeld("Step_2_Inference");
  StopServer();
  engine_.Release("Step_2_Inference");
  StartServing(TracingConfig());
  AwaitEnd(job);
  const auto spans = AllSpans();
  const auto attempts = Named(spans, "Total_Execution");
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_EQ(attempts[0].attributes.at("wan.stopped"), "true");
  EXPECT_THAT(attempts[0].links, IsEmpty());
  EXPECT_THAT(attempts[1].links, ElementsAre(attempts[0].span_id));
  const auto roots = Named(spans, "generate m");
  ASSERT_THAT(roots, SizeIs(1));
  EXPECT_EQ(roots[0].parent_span_id, kCaller);
  for (const ReceivedSpan& attempt : attempts) {
    EXPECT_EQ(attempt.parent_span_id, roots[0].span_id);
    EXPECT_EQ(attempt.trace_id, kTraceId);
  }
  EXPECT_THAT(Named(spans, "Queue_Wait"), SizeIs(2));
}

TEST_F(TracingServerTest, ADeadCollectorCostsNoJob) {
  ServerConfig config = DefaultConfig();
  {
    const support::HttpReceiver gone;
    config.otlp_endpoint = gone.Url("/v1/traces");
  }
  StartServing(config);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(AwaitEnd(Create({}).name()).state(), wan::v1::JOB_STATE_COMPLETED);
  }
  EXPECT_THAT(Metrics(), HasSubstr("wan_trace_spans_total{result=\"exported\"} 0"));
  StopServer();
  EXPECT_THAT(Log(), HasSubstr("\"spans are lost\""));
}

TEST_F(TracingServerTest, WhatBecameOfSpansIsCounted) {
  receiver_.AnswerWith(400);
  StartServing(TracingConfig());
  AwaitEnd(Create({}).name());
  clock_.AwaitWaiters(1);
  while (receiver_.Await(0).empty()) clock_.Advance(absl::Seconds(1));
  const size_t failed = SpansOf(receiver_.Await(1)).size();
  const std::string line = absl::StrCat("wan_trace_spans_total{result=\"failed\"} ", failed, "\n");
  while (!absl::StrContains(Metrics(), line)) clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Log(), HasSubstr("answers with the status 400"));
}

TEST_F(TracingServerTest, LogLinesHaveTheTrace) {
  StartServing(TracingConfig());
  const wan::v1::Job job = AwaitEnd(Create({{"traceparent", kParent}}).name());
  StopServer();
  EXPECT_THAT(Log(), testing::ContainsRegex("\"state\":\"JOB_STATE_COMPLETED\",[^\n]*"
                                            "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\""));
}

TEST_F(TracingServerTest, OffByDefault) {
  StartServing();
  const wan::v1::Job own = AwaitEnd(Create({}).name());
  EXPECT_FALSE(own.has_trace());
  EXPECT_THAT(Log(), Not(HasSubstr("trace_id")));
  // The caller's is kept for the log.
  EXPECT_EQ(AwaitEnd(Create({{"traceparent", kParent}}).name()).trace().trace_id(), kTraceId);
  EXPECT_THAT(Log(), HasSubstr(kTraceId));
}

TEST_F(TracingServerTest, TheOperatorNamesTheServer) {
  std::ofstream(folder_ + "/headers") << "X-Scope-OrgID: video\n";
  ServerConfig config = TracingConfig();
  config.otlp_headers = folder_ + "/headers";
  config.otlp_attributes = {"service.name=wan-eu", "deployment.environment.name=a=b"};
  StartServing(config);
  AwaitEnd(Create({}).name());
  AllSpans();
  const auto post = receiver_.Await(1)[0];
  const auto resource = support::ResourceOf(post);
  EXPECT_EQ(resource.at("service.name"), "wan-eu");
  EXPECT_EQ(resource.at("deployment.environment.name"), "a=b");
  EXPECT_EQ(resource.count("service.version"), 1u);
  EXPECT_EQ(post.fields.at("x-scope-orgid"), "video");
  EXPECT_THAT(Log(), Not(HasSubstr("video\"")));
}

TEST_F(TracingServerTest, WhatCannotBeUsedIsNoStart) {
  const auto refusal = [&](const ServerConfig& config) {
    return std::string(Server::Start(config, {&engine_}, clock_, logger(), {}).status().message());
  };
  ServerConfig config = TracingConfig();
  config.otlp_headers = folder_ + "/missing";
  EXPECT_THAT(refusal(config), HasSubstr("otlp_headers: "));
  config.otlp_headers.clear();
  config.otlp_endpoint = "collector:4318";
  EXPECT_THAT(refusal(config), HasSubstr("otlp_endpoint: is 'collector:4318'"));
}

}  // namespace
}  // namespace wan::server
