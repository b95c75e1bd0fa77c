// Where the latents of a request come from, who may take them, and how long they are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/job_inputs.h"
#include "server/jobs/request_latents.h"
#include "server/store/artifact_store.h"
#include "server/store/digest.h"
#include "server/store/sqlite_job_store.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// The fake engine takes what begins so for latents.
constexpr char kFile[] = "latents of a caller";

class LatentsRequestsTest : public LifecycleTest {
 protected:
  // A job of `owner` that has made latents; its name.
  std::string MakeLatents(const std::string& owner = "") {
    wan::v1::GenerationRequest request = Request();
    request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
    request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
    request.set_seed(7);
    const auto created = calls().Create(request, /*tied=*/false, owner);
    EXPECT_TRUE(created.ok()) << created.status();
    RunToEnd(created->job.name());
    return created->job.name();
  }

  static wan::v1::GenerationRequest Varied(const std::string& job) {
    wan::v1::GenerationRequest request = Request();
    request.mutable_latents()->set_job(job);
    request.set_strength(0.5);
    return request;
  }

  absl::Status CreateAs(const wan::v1::GenerationRequest& request, const std::string& owner) {
    return calls().Create(request, /*tied=*/false, owner).status();
  }

  std::vector<FieldViolation> ProblemsOf(const wan::v1::GenerationRequest& request,
                                         const std::string& owner = "") {
    const absl::Status refused = CreateAs(request, owner);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    return FieldViolationsOf(refused);
  }
};

TEST_F(LatentsRequestsTest, BytesReachTheEngineAndTheirDigestStaysInRequestReceiptAndReport) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.mutable_initial_latents()->set_data(kFile);
  const std::string name = Create(request);
  RunToEnd(name);
  EXPECT_EQ(*engine_->Generated().back().initial_latents, kFile);
  EXPECT_EQ(engine_->Generated().back().latents, nullptr);
  const wan::v1::LatentsSource stored = Get(name).request().initial_latents();
  EXPECT_EQ(stored.sha256(), Sha256Hex(kFile));
  EXPECT_EQ(stored.data(), "");
  EXPECT_FALSE(Get(name).request().has_latents());
  EXPECT_EQ(service_->Receipt(name)->request().initial_latents().sha256(), Sha256Hex(kFile));
  EXPECT_EQ(service_->Report(name)->request().initial_latents().sha256(), Sha256Hex(kFile));
}

TEST_F(LatentsRequestsTest, AnEarlierJobsLatentsAreTaken) {
  Open();
  const std::string made = MakeLatents();
  const std::string name = Create(Varied(made));
  RunToEnd(name);
  const GenerationRequest generated = engine_->Generated().back();
  EXPECT_EQ(*generated.latents, "latents seed 7");
  EXPECT_EQ(generated.strength, 0.5);
  EXPECT_EQ(Get(name).request().latents().job(), made);
  std::string digest;
  const wan::v1::Job maker = Get(made);
  for (const wan::v1::Artifact& artifact : maker.artifacts()) {
    if (artifact.kind() == wan::v1::OUTPUT_KIND_LATENTS) digest = artifact.sha256();
  }
  EXPECT_EQ(Get(name).request().latents().sha256(), digest);
}

TEST_F(LatentsRequestsTest, AJobKeepsItsLatentsWhenTheirMakerIsRemovedAndTheServerIsKilled) {
  Open();
  const std::string made = MakeLatents();
  const std::string held = CreateHeld("T5_Encoding", Varied(made));
  const std::string queued = Create(Varied(made));
  ASSERT_TRUE(calls().Delete(made).ok());
  KillAndRestart();
  RunToEnd(held);
  RunToEnd(queued);
  EXPECT_EQ(Get(queued).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(*engine_->Generated().back().latents, "latents seed 7");
}

// Named latents are links to the artifact, so they take no room of their own.
TEST_F(LatentsRequestsTest, NamedLatentsAreLinkedUntilTheJobHasEnded) {
  namespace fs = std::filesystem;
  Open();
  const std::string made = MakeLatents();
  const std::string held = CreateHeld("T5_Encoding", Varied(made));
  const fs::path link = options_.data_dir / "inputs" / absl::StrCat(held.substr(5), ".latents");
  ASSERT_TRUE(fs::exists(link));
  EXPECT_EQ(fs::hard_link_count(link), 2u);
  // Files of jobs that are not there are removed at the start.
  std::ofstream(options_.data_dir / "inputs" / "0.latents") << "x";
  KillAndRestart();
  EXPECT_FALSE(fs::exists(options_.data_dir / "inputs" / "0.latents"));
  RunToEnd(held);
  EXPECT_EQ(Get(held).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_FALSE(fs::exists(options_.data_dir / "inputs" / absl::StrCat(held.substr(5), ".latents")));
}

TEST_F(LatentsRequestsTest, EachJobOfABatchHasItsLink) {
  namespace fs = std::filesystem;
  Open();
  const std::string made = MakeLatents();
  CreateHeld("T5_Encoding");
  wan::v1::SubmitBatchRequest batch;
  for (int i = 0; i < 3; ++i) *batch.add_requests() = Varied(made);
  *batch.add_requests() = Request();
  const auto accepted = calls().SubmitBatch(batch);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_EQ(
      fs::hard_link_count(options_.data_dir / "artifacts" / made.substr(5) / "latents.safetensors"),
      4u);
}

TEST_F(LatentsRequestsTest, LatentsThatCannotBeLinkedAreCopied) {
  Open();
  const std::string made = MakeLatents();
  std::ofstream(options_.data_dir / "inputs") << "no folder";
  const std::string held = CreateHeld("T5_Encoding", Varied(made));
  ASSERT_TRUE(calls().Delete(made).ok());
  KillAndRestart();
  RunToEnd(held);
  EXPECT_EQ(Get(held).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(*engine_->Generated().back().latents, "latents seed 7");
}

// A database that is elsewhere can run its jobs after the folder is lost.
TEST_F(LatentsRequestsTest, ADatabaseOutsideTheFolderHasTheNamedLatents) {
  options_.open_store = [this](std::function<void(const absl::Status&)> on_problem) {
    return OpenSqliteJobStore(options_.data_dir / "elsewhere.db", std::move(on_problem));
  };
  Open();
  const std::string made = MakeLatents();
  const std::string held = CreateHeld("T5_Encoding", Varied(made));
  EXPECT_FALSE(std::filesystem::exists(options_.data_dir / "inputs"));
  ASSERT_TRUE(calls().Delete(made).ok());
  KillAndRestart();
  RunToEnd(held);
  EXPECT_EQ(Get(held).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(*engine_->Generated().back().latents, "latents seed 7");
}

TEST_F(LatentsRequestsTest, AnotherPrincipalsJobLooksLikeNone) {
  Open();
  const std::string made = MakeLatents("alice");
  EXPECT_TRUE(CreateAs(Varied(made), "alice").ok());
  const std::string wrong = ", which does not exist; must be one of your jobs";
  for (const std::string& job : {made, std::string("jobs/00000000000000000000")}) {
    EXPECT_THAT(ProblemsOf(Varied(job), "bob"),
                ElementsAre(FieldViolation{"latents.job", absl::StrCat("is ", job, wrong)}));
    wan::v1::GenerationRequest noise = Request();
    noise.mutable_initial_latents()->set_job(job);
    EXPECT_THAT(
        ProblemsOf(noise, "bob"),
        ElementsAre(FieldViolation{"initial_latents.job", absl::StrCat("is ", job, wrong)}));
    wan::v1::QuoteRequest quote;
    *quote.mutable_request() = Varied(job);
    EXPECT_THAT(FieldsOf(service_->Quote(quote, {"bob"}).status()), ElementsAre("latents.job"));
    wan::v1::SubmitBatchRequest batch;
    *batch.add_requests() = Varied(job);
    EXPECT_THAT(FieldsOf(calls().SubmitBatch(batch, "bob").status()),
                ElementsAre("requests[0].latents.job"));
  }
  // An administrator may read every job.
  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = Varied(made);
  EXPECT_TRUE(service_->Quote(quote, {"root", /*all=*/true}).ok());
}

TEST_F(LatentsRequestsTest, AJobWithoutLatentsIsRefusedWithTheReason) {
  Open();
  const std::string plain = Create();
  RunToEnd(plain);
  EXPECT_THAT(ProblemsOf(Varied(plain)),
              ElementsAre(FieldViolation{
                  "latents.job", absl::StrCat("is ", plain,
                                              ", which has no latents; must be a job that has "
                                              "completed with LATENTS among its outputs")}));
  const std::string made = MakeLatents();
  ASSERT_TRUE(calls().DeleteArtifact(made + "/artifacts/latents.safetensors").ok());
  EXPECT_THAT(
      ProblemsOf(Varied(made)),
      ElementsAre(FieldViolation{
          "latents.job",
          absl::StrCat("is ", made,
                       ", whose latents were removed; must be a job that still has them")}));
}

TEST_F(LatentsRequestsTest, ADigestMustFit) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.mutable_initial_latents()->set_data(kFile);
  request.mutable_initial_latents()->set_sha256(Sha256Hex(kFile));
  EXPECT_TRUE(CreateAs(request, "").ok());
  request.mutable_initial_latents()->set_data("latents of another");
  const auto problems = ProblemsOf(request);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "initial_latents.sha256");
  EXPECT_THAT(problems[0].description, StartsWith(absl::StrCat("is ", Sha256Hex(kFile), ", but")));
}

TEST_F(LatentsRequestsTest, ASourceMustBeGiven) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.mutable_latents();
  EXPECT_THAT(FieldsOf(CreateAs(request, "")), ElementsAre("latents"));
  request.mutable_latents()->set_job("no job");
  EXPECT_THAT(FieldsOf(CreateAs(request, "")), ElementsAre("latents.job"));
  request.mutable_latents()->set_data(std::string((size_t{32} << 20) + 1, 'l'));
  EXPECT_THAT(FieldsOf(CreateAs(request, "")), ElementsAre("latents"));
}

// What another attempt would compute follows from the digest, so a savepoint of other latents does
// not fit.
TEST_F(LatentsRequestsTest, ARetryWithOtherLatentsIsAnotherRequest) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  request.mutable_initial_latents()->set_data(kFile);
  const std::string name = Create(request);
  EXPECT_EQ(calls().Create(request, false)->job.name(), name);
  request.mutable_initial_latents()->set_data("latents of another");
  EXPECT_EQ(ReasonOf(CreateAs(request, "")), kReasonRequestIdReused);
}

TEST_F(LatentsRequestsTest, ZeroStepsOnlyDecode) {
  Open();
  const std::string made = MakeLatents();
  wan::v1::GenerationRequest request;
  request.set_model("m");
  request.mutable_latents()->set_job(made);
  request.set_steps(0);
  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = request;
  EXPECT_EQ(service_->Quote(quote)->steps(), 0);
  const std::string name = Create(request);
  std::vector<std::string> events = Brief(RunToEnd(name));
  EXPECT_EQ(events.back(), "completed");
  EXPECT_THAT(events, testing::Not(testing::Contains("start T5_Encoding")));
  EXPECT_EQ(Get(name).request().steps(), 0);
}

// Whatever refuses a job without looking at its latents comes before they are read.
TEST_F(LatentsRequestsTest, CheapChecksComeBeforeTheLatentsAreRead) {
  options_.queue_capacity = 1;
  Open();
  const std::string made = MakeLatents();
  ASSERT_TRUE(calls().DeleteArtifact(made + "/artifacts/latents.safetensors").ok());
  wan::v1::GenerationRequest wrong = Varied(made);
  wrong.set_priority(1000);
  EXPECT_THAT(FieldsOf(CreateAs(wrong, "")), ElementsAre("priority"));
  EXPECT_THAT(FieldsOf(CreateAs(Varied(made), "")), ElementsAre("latents.job"))
      << "only reading shows that the file is gone";
  CreateHeld("T5_Encoding");
  Create();
  EXPECT_EQ(ReasonOf(CreateAs(Varied(made), "")), kReasonQueueFull);
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = Varied(made);
  EXPECT_EQ(ReasonOf(calls().SubmitBatch(batch).status()), kReasonQueueFull);
}

// Waiting would not help such a batch.
TEST_F(LatentsRequestsTest, ABatchThatNamesTooManyBytesIsToldHowManyRequestsFit) {
  Open();
  engine_->PadOutputs(kMostArtifactLatentsBytes);
  const std::string made = MakeLatents();
  engine_->PadOutputs(0);
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = Request();
  for (int i = 0; i < 5; ++i) *batch.add_requests() = Varied(made);
  const int plans = engine_->Plans();
  const absl::Status refused = calls().SubmitBatch(batch).status();
  EXPECT_EQ(FieldViolationsOf(refused),
            (std::vector<FieldViolation>{
                {"requests",
                 "name latents of together 335544320 bytes; must name at most 268435456, for "
                 "example those of the first 5 requests, with the others in further batches"}}));
  EXPECT_EQ(engine_->Plans(), plans) << "nothing was read";
  batch.mutable_requests()->DeleteSubrange(2, 4);
  EXPECT_TRUE(calls().SubmitBatch(batch).ok());
}

// Artifacts that callers name must not fill the memory, however many requests name them.
TEST(RequestLatentsTest, TheBytesOfNamedArtifactsAreShared) {
  const RequestLatents latents({});
  const std::string caller = "alice";
  auto most = latents.Hold(caller, kMostCallLatentsBytes);
  ASSERT_TRUE(most.ok()) << most.status();
  const absl::Status refused = latents.Hold(caller, 1).status();
  EXPECT_EQ(ReasonOf(refused), kReasonServerBusy) << refused;
  EXPECT_THAT(std::string(refused.message()), StartsWith("requests of this caller already hold"));
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  auto others = latents.Hold("bob", kMostCallLatentsBytes / 2);
  ASSERT_TRUE(others.ok()) << "one caller cannot take everything: " << others.status();
  EXPECT_THAT(std::string(latents.Hold("carol", kMostCallLatentsBytes).status().message()),
              StartsWith("requests hold 402653184 of the 536870912 bytes"));
  most->reset();
  EXPECT_TRUE(latents.Hold(caller, 1).ok());
  EXPECT_TRUE(latents.Hold("carol", kMostCallLatentsBytes / 2).ok());
}

TEST(RequestLatentsTest, AFileKeepsItsBytesUntilItIsGone) {
  constexpr uint64_t kBytes = kMostArtifactLatentsBytes;
  const TempFolder folder;
  const ArtifactStore store(folder.path());
  const std::vector<OutputKind> kinds = {OutputKind::kLatents};
  const auto outputs = store.Stage("jobs/a", 1, kinds);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::ofstream(outputs->front().path).close();
  std::filesystem::resize_file(outputs->front().path, kBytes);
  const auto published = store.Publish("jobs/a", 1, *outputs, {});
  ASSERT_TRUE(published.ok()) << published.status();
  wan::v1::Job job;
  *job.add_artifacts() = published->front();
  const RequestLatents latents(
      {.owner_of = [](std::string_view) { return absl::StatusOr<std::string>(""); },
       .find = [&](std::string_view) { return absl::StatusOr<wan::v1::Job>(job); },
       .open = [&](std::string_view name) { return store.OpenForReading(name, 1, 0); }});
  wan::v1::GenerationRequest request;
  request.mutable_latents()->set_job("jobs/a");
  std::vector<FieldViolation> violations;
  auto named = latents.Find(request, {}, violations);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->bytes(), kBytes);
  JobInputs inputs;
  {
    const auto lease = latents.Hold("", kMostCallLatentsBytes);
    ASSERT_TRUE(lease.ok()) << lease.status();
    auto read = latents.Read(request, *named, *lease, violations);
    ASSERT_TRUE(read.ok()) << read.status();
    inputs = *std::move(read);
  }
  EXPECT_EQ(inputs.latents->size(), kBytes);
  EXPECT_EQ(ReasonOf(latents.Hold("", 1).status()), kReasonServerBusy);
  inputs = {};
  EXPECT_TRUE(latents.Hold("", 1).ok());
  // One more byte is too many for any request.
  job.mutable_artifacts(0)->set_size_bytes(kBytes + 1);
  ASSERT_TRUE(latents.Find(request, {}, violations).ok());
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].field, "latents.job");
}

}  // namespace
}  // namespace wan::server
