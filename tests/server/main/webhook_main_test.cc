// That a report of a job's end outlives the program.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/process.h"
#include "tests/support/http_receiver.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

using e2e::Process;
using e2e::TemporaryFolder;

TEST(WebhookMainTest, KilledBetweenTheEndAndTheDelivery) {
  const TemporaryFolder folder;
  support::HttpReceiver receiver;
  receiver.AnswerWith(503);
  std::ofstream(folder.File("secret")) << "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n";
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
                                            "--webhook-host",
                                            "127.0.0.1:" + std::to_string(receiver.port()),
                                            "--webhook-secret",
                                            folder.File("secret"),
                                            "--webhook-http",
                                            "true",
                                            "--webhook-private",
                                            "true"};
  std::string job;
  {
    Process server(command, folder.File("log"));
    const std::string line = server.ReadLine();
    const size_t at = line.find("127.0.0.1:");
    const auto stub = wan::v1::VideoGeneration::NewStub(grpc::CreateChannel(
        line.substr(at, line.find('"', at) - at), grpc::InsecureChannelCredentials()));
    wan::v1::CreateJobRequest request;
    request.mutable_request()->set_model("m");
    request.mutable_request()->set_prompt("a cat");
    request.mutable_request()->set_webhook_url(receiver.Url("/x"));
    wan::v1::Job created;
    grpc::Status status;
    do {  // until the model is ready
      grpc::ClientContext context;
      status = stub->CreateJob(&context, request, &created);
    } while (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
             status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    ASSERT_TRUE(status.ok()) << status.error_message();
    job = created.name();
    receiver.Await(1);
    server.Signal(SIGKILL);
    server.Wait();
  }
  const size_t before = receiver.Await(1).size();
  receiver.AnswerWith(200);
  Process server(command, folder.File("log"));
  server.ReadLine();
  const auto posts = receiver.Await(before + 1);
  EXPECT_EQ(posts.back().fields.at("webhook-id"), "msg_" + job.substr(std::string("jobs/").size()));
  EXPECT_EQ(posts.back().body, posts.front().body);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

}  // namespace
}  // namespace wan::server
