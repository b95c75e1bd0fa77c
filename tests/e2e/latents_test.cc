// Latents of an earlier job: decoded, and changed, also through a kill -9.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using testing::UnorderedElementsAre;
using wan::v1::Event;

std::string DigestOf(const wan::v1::Job& job, wan::v1::OutputKind kind) {
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    if (artifact.kind() == kind) return artifact.sha256();
  }
  ADD_FAILURE() << job.DebugString();
  return "";
}

wan::v1::GenerationRequest WithBothFiles(wan::v1::GenerationRequest request) {
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  return request;
}

TEST(LatentsTest, AJobThatOnlyDecodesMakesTheSameVideoWithoutSteps) {
  const TemporaryFolder folder;
  TestServer server({.data_dir = folder.path()});
  const wan::v1::GenerationRequest request = WithBothFiles(TinyRequest());
  const wan::v1::Job made = server.Await(server.Submit(request).name());
  ASSERT_EQ(made.state(), wan::v1::JOB_STATE_COMPLETED) << made.DebugString();
  wan::v1::GenerationRequest decode = request;
  decode.clear_prompt();
  decode.set_steps(0);
  decode.mutable_latents()->set_job(made.name());
  const std::string name = server.Submit(decode).name();
  std::vector<std::string> stages;
  for (const Event& event : server.Watch(name)) {
    EXPECT_FALSE(event.has_step_progress());
    if (event.has_stage_started()) stages.push_back(event.stage_started().stage());
  }
  EXPECT_THAT(stages, UnorderedElementsAre("Queue_Wait", "Total_Execution", "TI2V_Preprocess",
                                           "VAE_Decoding", "Video_Encoding"));
  const wan::v1::Job decoded = server.Get(name);
  for (const auto kind : {wan::v1::OUTPUT_KIND_LOSSLESS_MKV, wan::v1::OUTPUT_KIND_LATENTS}) {
    EXPECT_EQ(DigestOf(decoded, kind), DigestOf(made, kind));
  }
  EXPECT_EQ(decoded.request().latents().sha256(), DigestOf(made, wan::v1::OUTPUT_KIND_LATENTS));
}

TEST(LatentsTest, AChangedJobGoesOnAfterAKillWithItsBits) {
  const TemporaryFolder folder;
  // So many steps that a kill finds it at work.
  constexpr int kSteps = 400;
  wan::v1::GenerationRequest vary = WithBothFiles(TinyRequest(kSteps));
  vary.set_strength(0.9);
  const ServerOptions options = {.data_dir = folder.path(),
                                 .flags = {"--checkpoint-interval", "0"}};
  std::string whole;
  std::string killed;
  {
    TestServer server(options);
    const wan::v1::Job made = server.Await(server.Submit(WithBothFiles(TinyRequest())).name());
    vary.mutable_latents()->set_job(made.name());
    whole = server.Submit(vary).name();
    const wan::v1::Job first = server.Await(whole);
    ASSERT_EQ(first.state(), wan::v1::JOB_STATE_COMPLETED) << first.DebugString();
    killed = server.Submit(vary).name();
    server.Watch(killed, 0, [](const Event& event) { return event.has_step_progress(); });
    server.Kill();
  }
  TestServer server(options);
  const wan::v1::Job job = server.Await(killed);
  EXPECT_EQ(job.attempt(), 2);
  int total = 0;
  for (const Event& event : server.Watch(killed)) {
    if (event.has_step_progress()) total = event.step_progress().total();
    if (event.has_resumed()) {
      EXPECT_LT(event.resumed().step(), kSteps);
    }
  }
  EXPECT_GT(total, 0);
  EXPECT_LT(total, kSteps) << "the steps above the strength are not computed";
  for (const auto kind : {wan::v1::OUTPUT_KIND_LOSSLESS_MKV, wan::v1::OUTPUT_KIND_LATENTS}) {
    EXPECT_EQ(DigestOf(job, kind), DigestOf(server.Get(whole), kind));
  }
}

}  // namespace
}  // namespace wan::e2e
