// What the service makes of requests: refused with every reason, known again, put in their order,
// listed.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/jobs/job_service.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

class JobRequestsTest : public ServiceTest {};

TEST_F(JobRequestsTest, CreateTellsEveryViolationAtOnce) {
  Open();
  wan::v1::GenerationRequest request = Request("");
  request.set_width(63);
  request.set_num_frames(6);
  request.set_priority(101);
  request.set_preview_interval(-1);
  request.add_outputs(static_cast<wan::v1::OutputKind>(9));
  request.set_request_id(std::string(129, 'x'));
  request.mutable_deadline()->set_seconds(1);
  const absl::Status status = calls().Create(request, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(FieldsOf(status), ElementsAre("request_id", "priority", "deadline", "outputs[0]",
                                            "prompt", "width", "num_frames", "preview_interval"));
  EXPECT_EQ(service_->Stats().queued_total, 0);
}

TEST_F(JobRequestsTest, AModelHasTwoNamesAndARequestOneForm) {
  Open();
  wan::v1::GenerationRequest bare = Request();
  bare.set_request_id("one");
  wan::v1::GenerationRequest resource = bare;
  resource.set_model("models/m");
  const auto created = calls().Create(resource, false);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->job.request().model(), "m");
  const auto again = calls().Create(bare, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created) << "it is the same request";

  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = resource;
  *batch.add_requests() = resource;
  batch.mutable_requests(1)->set_request_id("two");
  const auto jobs = calls().SubmitBatch(batch);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs(0).name(), created->job.name());
  EXPECT_EQ(Get(jobs->jobs(1).name()).request().model(), "m");

  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = resource;
  EXPECT_EQ(service_->Quote(quote)->request().model(), "m");
  resource.set_model("models/none");
  resource.clear_request_id();
  EXPECT_THAT(FieldsOf(calls().Create(resource, false).status()), ElementsAre("model"));
}

TEST_F(JobRequestsTest, WhatIsTooLargeIsRefusedBeforeAnythingElse) {
  Open();
  const int plans = engine_->Plans();
  wan::v1::GenerationRequest request = Request("");
  request.set_priority(101);
  for (int i = 0; i < 1000; ++i) request.add_outputs(static_cast<wan::v1::OutputKind>(9));
  for (int i = 0; i < 1000; ++i) request.add_loras();
  EXPECT_THAT(FieldsOf(calls().Create(request, false).status()), ElementsAre("outputs", "loras"));
  EXPECT_EQ(engine_->Plans(), plans);
}

TEST_F(JobRequestsTest, ListTakesAStateOnceAndOnlySoMany) {
  Open();
  RunToEnd(Create());
  Create();
  wan::v1::ListJobsRequest request;
  for (int i = 0; i < 16; ++i) request.add_states(JOB_STATE_COMPLETED);
  request.set_page_size(1);
  const auto page = calls().List(request);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->jobs(), SizeIs(1));
  for (int i = 0; i < 1000; ++i) request.add_states(static_cast<wan::v1::JobState>(77));
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("states"));
}

TEST_F(JobRequestsTest, UnknownModelIsAViolationAmongTheOthers) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_model("n");
  request.set_priority(101);
  const absl::Status status = calls().Create(request, false).status();
  EXPECT_THAT(FieldsOf(status), ElementsAre("priority", "model"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("this server has: m"));
  request.clear_model();
  EXPECT_THAT(FieldsOf(calls().Create(request, false).status()), ElementsAre("model", "priority"));
}

TEST_F(JobRequestsTest, ExceptionOfPlanIsAStatusAndHoldsNothing) {
  Open();
  engine_->ThrowAt("Plan", "std::bad_function_call");
  const absl::Status status = calls().Create(Request(), false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(JobRequestsTest, SameRequestIdIsTheSameJob) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  wan::v1::GenerationRequest retry = request;
  for (int i = 0; i < 50; ++i) {  // the order of a map's entries is no part of the request
    (*request.mutable_labels())[absl::StrCat(i)] = "x";
    (*retry.mutable_labels())[absl::StrCat(49 - i)] = "x";
  }
  const std::string name = Create(request);
  RunToEnd(name);
  const auto again = calls().Create(retry, true);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->job.name(), name);
  EXPECT_EQ(again->job.state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(engine_->Generated(), SizeIs(1));
}

TEST_F(JobRequestsTest, SameRequestIdForAnotherRequestIsAnError) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  const std::string name = Create(request);
  request.set_image("PNG another");
  const absl::Status status = calls().Create(request, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), kReasonRequestIdReused);
  EXPECT_THAT(std::string(status.message()), HasSubstr(name));
}

TEST_F(JobRequestsTest, AnotherBackgroundMakesAnotherRequest) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  request.set_image("PNG bytes");
  request.set_background("#102030");
  const std::string name = Create(request);
  EXPECT_EQ(calls().Create(request, false)->job.name(), name);
  request.set_background("#102031");
  EXPECT_EQ(ReasonOf(calls().Create(request, false).status()), kReasonRequestIdReused);
}

TEST_F(JobRequestsTest, AnotherQualityMakesAnotherRequest) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  const std::string name = Create(request);
  EXPECT_EQ(calls().Create(request, false)->job.name(), name);
  request.set_quality(wan::v1::QUALITY_FAST);
  EXPECT_EQ(ReasonOf(calls().Create(request, false).status()), kReasonRequestIdReused);
}

TEST_F(JobRequestsTest, RetryFindsItsJobWhateverHasBecomeOfTheServer) {
  options_.queue_capacity = 1;
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  *request.mutable_deadline() = ToProto(clock_.Now() + absl::Hours(1));
  const std::string name = Create(request);  // the queue is full now
  const auto again = calls().Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job.name(), name);
  ASSERT_TRUE(calls().Cancel(name, "test").ok());
  clock_.Advance(absl::Hours(2));  // its deadline lies in the past now
  EXPECT_TRUE(calls().Create(request, false).ok());
}

TEST_F(JobRequestsTest, ManyThreadsWithOneRequestIdMakeOneJob) {
  options_.queue_capacity = 1;
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  constexpr int kThreads = 16;
  const int plans = engine_->Plans();
  engine_->Hold("Plan");  // the first stays there until all have begun
  std::atomic<int> begun = 0;
  std::vector<absl::StatusOr<JobService::Created>> results(kThreads, absl::UnknownError(""));
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      ++begun;
      result = calls().Create(request, false);
    });
  }
  while (begun < kThreads) std::this_thread::yield();
  engine_->AwaitHeld("Plan");
  engine_->Release("Plan");
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> names;
  int created = 0;
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    names.insert(result->job.name());
    created += result->created ? 1 : 0;
  }
  EXPECT_THAT(names, SizeIs(1));
  EXPECT_EQ(created, 1);
  EXPECT_EQ(engine_->Plans(), plans + 1);
}

TEST_F(JobRequestsTest, FullQueueSaysWhenToComeBack) {
  options_.queue_capacity = 2;
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  RunToEnd(Create());
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");  // it runs, so it does not wait
  Create();
  Create();
  const absl::Status status = calls().Create(Request(), false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), kReasonQueueFull);
  EXPECT_EQ(RetryDelayOf(status), absl::Seconds(12));
  EXPECT_EQ(service_->Stats().queued.at("m"), 2);
  engine_->Release("T5_Encoding");
}

TEST_F(JobRequestsTest, HigherPriorityRunsFirstAndEqualsByAge) {
  Open();
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  std::vector<std::string> names;
  for (const int priority : {0, 5, 0, 100, -100, 5}) {
    wan::v1::GenerationRequest request = Request(absl::StrCat("job ", names.size()));
    request.set_priority(priority);
    names.push_back(Create(request));
  }
  std::vector<int> positions;
  for (const std::string& name : names) positions.push_back(Get(name).queue_position());
  EXPECT_THAT(positions, ElementsAre(3, 1, 4, 0, 5, 2));
  engine_->Release("T5_Encoding");
  for (const std::string& name : names) RunToEnd(name);
  std::vector<std::string> prompts;
  for (const GenerationRequest& request : engine_->Generated()) prompts.push_back(request.prompt);
  EXPECT_THAT(prompts, ElementsAre("a cat", "job 3", "job 1", "job 5", "job 0", "job 2", "job 4"));
}

TEST_F(JobRequestsTest, WaitingJobsHearOfTheirPlaceAtReasonableCost) {
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  std::string last;
  for (int i = 0; i < 41; ++i) last = Create();
  engine_->Release("T5_Encoding");
  std::vector<std::string> places;
  for (const std::string& text : Brief(RunToEnd(last))) {
    if (text.rfind("queued", 0) == 0) places.push_back(text);
  }
  EXPECT_THAT(places, ElementsAre("queued 40", "queued 20", "queued 10", "queued 5", "queued 3",
                                  "queued 2", "queued 1", "queued 0"));
}

TEST_F(JobRequestsTest, AJobFarBackHearsOfManyThatGoBeforeIt) {
  options_.queue_capacity = 2'000;
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  std::string watched;
  for (int i = 0; i <= 300; ++i) watched = Create();
  EXPECT_EQ(Get(watched).queue_position(), 300);
  wan::v1::GenerationRequest urgent = Request();
  urgent.set_priority(1);
  std::vector<std::string> before;
  for (int i = 0; i < 1'200; ++i) before.push_back(Create(urgent));
  // No job has begun or ended meanwhile. It hears when its position has doubled, or soon after.
  BlockingReader reader(*service_, watched);
  EXPECT_EQ(reader.Next()->queued().position(), 300);
  const int doubled = reader.Next()->queued().position();
  EXPECT_GE(doubled, 600);
  EXPECT_LE(doubled, 750);
  const int again = reader.Next()->queued().position();
  EXPECT_GE(again, 2 * doubled);
  for (const std::string& job : before) ASSERT_TRUE(calls().Cancel(job, "").ok());
  const int halved = reader.Next()->queued().position();
  EXPECT_LE(halved, again / 2);
  EXPECT_GE(halved, again / 4);
  engine_->Release("T5_Encoding");
}

TEST_F(JobRequestsTest, NoCallWalksAQueueOfThousandsUnderTheLock) {
  options_.queue_capacity = 6'000;
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  std::vector<std::string> names;
  for (int i = 0; i < 5'000; ++i) names.push_back(Create());
  wan::v1::GenerationRequest urgent = Request();
  urgent.set_priority(1);  // all others hear of it
  Create(urgent);
  EXPECT_EQ(Get(names.back()).queue_position(), 5'000);
  ASSERT_TRUE(calls().Cancel(names.front(), "").ok());
  service_->AwaitWrites();
  EXPECT_EQ(service_->Stats().queued.at("m"), 5'000);
  engine_->Release("T5_Encoding");
  RunToEnd(names[1]);  // estimates all that wait anew, three times
  const int64_t before = service_->Stats().most_entries_at_once;
  Close();
  Open(/*load=*/false);
  EXPECT_GT(service_->Stats().queued_total, 4'000);
  LoadModel("m");
  RunToEnd(names[2]);
  // After the restart the estimates may still be under way.
  const int64_t most = std::max(before, service_->Stats().most_entries_at_once);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 64);
}

TEST_F(JobRequestsTest, ListPagesFromTheNewest) {
  Open();
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(Create());
  for (const std::string& name : names) RunToEnd(name);
  std::reverse(names.begin(), names.end());
  wan::v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<std::string> listed;
  std::vector<int> sizes;
  do {
    const auto page = calls().List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& job : page->jobs()) listed.push_back(job.name());
    sizes.push_back(page->jobs_size());
    request.set_page_token(page->next_page_token());
    Create();  // newer jobs do not move the pages
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, names);
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
}

TEST_F(JobRequestsTest, AListIsMadeInSteps) {
  options_.queue_capacity = 1'200;
  Open();
  engine_->Hold("T5_Encoding");
  for (int i = 0; i < 1'030; ++i) Create();
  wan::v1::ListJobsRequest request;
  request.set_filter("priority = 7");
  const auto none = service_->BeginList(request);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*(*none)->Step(), false) << "others have their turn";
  EXPECT_EQ(*(*none)->Step(), true);
  EXPECT_THAT((*none)->Take().jobs(), IsEmpty());
  // Without jobs of its own a principal waits for nobody's.
  const auto other = service_->BeginList(request, "nobody");
  EXPECT_EQ(*(*other)->Step(), true);
  engine_->Release("T5_Encoding");
}

TEST_F(JobRequestsTest, APageTokenTellsNothingAndOutlivesARestart) {
  Open();
  for (int i = 0; i < 3; ++i) RunToEnd(Create());
  wan::v1::ListJobsRequest request;
  request.set_page_size(2);
  request.set_page_token(calls().List(request)->next_page_token());
  std::string bytes;
  ASSERT_TRUE(absl::WebSafeBase64Unescape(request.page_token(), &bytes));
  EXPECT_THAT(bytes, Not(HasSubstr(",2,2"))) << "the number of the page's last job";
  Close();
  Open(/*load=*/false);
  EXPECT_THAT(calls().List(request)->jobs(), SizeIs(1));
  // What another server, or a caller, has made.
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  request.set_page_token(absl::WebSafeBase64Escape(bytes));
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_token"));
}

TEST_F(JobRequestsTest, ListFiltersByState) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  engine_->Hold("T5_Encoding");
  const std::string running = Create();
  engine_->AwaitHeld("T5_Encoding");
  const std::string queued = Create();
  const std::string cancelled = Create();
  ASSERT_TRUE(calls().Cancel(cancelled, "test").ok());
  const auto list = [&](std::initializer_list<wan::v1::JobState> states) {
    wan::v1::ListJobsRequest request;
    for (const wan::v1::JobState state : states) request.add_states(state);
    const auto page = calls().List(request);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> names;
    for (const auto& job : page->jobs()) names.push_back(job.name());
    return names;
  };
  EXPECT_THAT(list({}), ElementsAre(cancelled, queued, running, done));
  EXPECT_THAT(list({JOB_STATE_RUNNING}), ElementsAre(running));
  EXPECT_THAT(list({JOB_STATE_QUEUED, JOB_STATE_COMPLETED}), ElementsAre(queued, done));
  EXPECT_THAT(list({JOB_STATE_FAILED}), IsEmpty());
}

TEST_F(JobRequestsTest, ListRefusesWhatItDoesNotUnderstand) {
  Open();
  for (int i = 0; i < 3; ++i) Create();
  wan::v1::ListJobsRequest request;
  request.set_page_size(-1);
  request.add_states(wan::v1::JOB_STATE_UNSPECIFIED);
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_size", "states[0]"));
  request.Clear();
  request.set_page_size(1001);
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_size"));
  request.Clear();
  request.set_page_token("nonsense");
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_token"));
  request.set_page_size(1);
  request.clear_page_token();
  request.set_page_token(calls().List(request)->next_page_token());
  EXPECT_TRUE(calls().List(request).ok());
  request.add_states(JOB_STATE_QUEUED);
  EXPECT_THAT(FieldsOf(calls().List(request).status()), ElementsAre("page_token"));
}

TEST_F(JobRequestsTest, NamesThatAreNoneAndJobsThatAreNot) {
  Open();
  for (const char* name : {"", "jobs/", "jobs/../x", "jobs/A", "abc", "models/m"}) {
    EXPECT_THAT(FieldsOf(service_->Get(name).status()), ElementsAre("name")) << name;
    EXPECT_THAT(FieldsOf(calls().Cancel(name, "test").status()), ElementsAre("name")) << name;
    EXPECT_THAT(FieldsOf(service_->Watch(name, 0, [] {}).status()), ElementsAre("name")) << name;
  }
  EXPECT_EQ(ReasonOf(service_->Get("jobs/abc").status()), kReasonJobNotFound);
  EXPECT_EQ(ReasonOf(calls().Cancel("jobs/abc", "test").status()), kReasonJobNotFound);
  EXPECT_EQ(ReasonOf(service_->Watch("jobs/abc", 0, [] {}).status()), kReasonJobNotFound);
  EXPECT_THAT(FieldsOf(service_->Watch("jobs/abc", -1, [] {}).status()),
              ElementsAre("after_sequence"));
}

}  // namespace
}  // namespace wan::server
