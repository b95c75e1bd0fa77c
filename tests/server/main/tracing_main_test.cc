// That a job's trace outlives the program.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/process.h"
#include "tests/server/tracing/received_spans.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::TemporaryFolder;
using support::Named;
using support::ReceivedSpan;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::unique_ptr<wan::v1::VideoGeneration::Stub> Connect(Process& server) {
  const std::string line = server.ReadLine();
  const size_t at = line.find("127.0.0.1:");
  return wan::v1::VideoGeneration::NewStub(grpc::CreateChannel(
      line.substr(at, line.find('"', at) - at), grpc::InsecureChannelCredentials()));
}

// Reads the job's events up to one that `last` accepts.
template <typename Last>
void Follow(wan::v1::VideoGeneration::Stub& stub, const std::string& job, const Last& last) {
  grpc::ClientContext context;
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  const auto stream = stub.WatchJob(&context, request);
  wan::v1::Event event;
  while (stream->Read(&event)) {
    if (last(event)) return context.TryCancel();
  }
}

TEST(TracingMainTest, KilledBetweenTwoSteps) {
  const TemporaryFolder folder;
  support::HttpReceiver receiver;
  const std::vector<std::string> command = {WAN_FAKE_SERVER,
                                            "--listen",
                                            "127.0.0.1:0",
                                            "--metrics-listen",
                                            "127.0.0.1:0",
                                            "--http-listen",
                                            "none",
                                            "--data-dir",
                                            folder.File("data"),
                                            "--model",
                                            "m=synthetic:ti2v-5b",
                                            "--otlp-endpoint",
                                            receiver.Url("")};
  std::string job;
  {
    setenv("WAN_FAKE_HOLD", "Step_2_Inference", 1);
    Process server(command, folder.File("log"));
    unsetenv("WAN_FAKE_HOLD");
    const auto stub = Connect(server);
    wan::v1::CreateJobRequest request;
    request.mutable_request()->set_model("m");
    request.mutable_request()->set_prompt("a cat");
    wan::v1::Job created;
    grpc::Status status;
    do {  // until the model is ready
      grpc::ClientContext context;
      context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
      status = stub->CreateJob(&context, request, &created);
    } while (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
             status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    ASSERT_TRUE(status.ok()) << status.error_message();
    job = created.name();
    Follow(*stub, job, [](const wan::v1::Event& event) {
      return event.stage_started().stage() == "Step_2_Inference";
    });
    receiver.Await(1);  // what has ended by then is exported before the attempt ends
    server.Signal(SIGKILL);
    server.Wait();
  }
  {
    Process server(command, folder.File("log"));
    const auto stub = Connect(server);
    Follow(*stub, job, [](const wan::v1::Event& event) { return event.has_completed(); });
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  const std::vector<ReceivedSpan> spans = SpansOf(receiver.Await(2));
  const auto roots = Named(spans, "generate m");
  ASSERT_THAT(roots, SizeIs(1));
  EXPECT_EQ(roots[0].parent_span_id, "b7ad6b7169203331");
  EXPECT_EQ(roots[0].attributes.at("wan.attempts"), "2");
  EXPECT_FALSE(roots[0].failed);
  const auto attempts = Named(spans, "Total_Execution");
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_TRUE(attempts[0].failed);
  EXPECT_EQ(attempts[0].attributes.at("error.type"), "PROCESS_LOST");
  EXPECT_THAT(attempts[1].links, ElementsAre(attempts[0].span_id));
  for (const ReceivedSpan& span : spans) {
    EXPECT_EQ(span.trace_id, "0af7651916cd43dd8448eb211c80319c") << span.name;
  }
  // The first process exported this one, and the second one its parent.
  const auto encodings = Named(spans, "T5_Encoding");
  ASSERT_THAT(encodings, SizeIs(2));
  EXPECT_EQ(encodings[0].parent_span_id, attempts[0].span_id);
  EXPECT_EQ(encodings[1].parent_span_id, attempts[1].span_id);
}

}  // namespace
}  // namespace wan::server
