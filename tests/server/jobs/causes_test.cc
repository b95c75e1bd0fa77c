// What listeners are told of why jobs ended, went back, or were not accepted.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "server/conversion/convert.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Causes final : public StateListener {
 public:
  void OnJobCancelled(const wan::v1::Job& job, StopCause cause) override {
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_CANCELLED);
    absl::MutexLock lock(&mutex_);
    stops_.push_back(cause);
  }
  void OnJobRequeued(const wan::v1::Job& job, RequeueCause cause) override {
    EXPECT_EQ(job.state(), wan::v1::JOB_STATE_QUEUED);
    absl::MutexLock lock(&mutex_);
    requeues_.push_back(cause);
  }
  void OnEstimateMet(const wan::v1::Job& /*job*/, const EstimateMet& met) override {
    absl::MutexLock lock(&mutex_);
    met_.push_back(met);
  }
  void OnJobsRejected(const absl::Status& problem, int jobs) override {
    absl::MutexLock lock(&mutex_);
    rejected_.emplace_back(problem.code(), jobs);
  }
  void OnStoreWrite(std::string_view operation, absl::Duration /*taken*/) override {
    absl::MutexLock lock(&mutex_);
    writes_.insert(std::string(operation));
  }

  std::vector<StopCause> stops() { return Copy(stops_); }
  std::vector<RequeueCause> requeues() { return Copy(requeues_); }
  std::vector<EstimateMet> met() { return Copy(met_); }
  std::vector<std::pair<absl::StatusCode, int>> rejected() { return Copy(rejected_); }
  std::set<std::string> writes() { return Copy(writes_); }

 private:
  template <typename Values>
  Values Copy(const Values& values) {
    absl::MutexLock lock(&mutex_);
    return values;
  }

  absl::Mutex mutex_;
  std::vector<StopCause> stops_;
  std::vector<RequeueCause> requeues_;
  std::vector<EstimateMet> met_;
  std::vector<std::pair<absl::StatusCode, int>> rejected_;
  std::set<std::string> writes_;
};

class CausesTest : public ServiceTest {
 protected:
  CausesTest() {
    options_.listeners.push_back(&causes_);
    options_.caller_grace = absl::ZeroDuration();
  }
  ~CausesTest() override { Close(); }  // the listener is told things until then

  Causes causes_;
};

TEST_F(CausesTest, OfCancels) {
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  ASSERT_TRUE(calls().Cancel(Create(), "no longer wanted").ok());
  wan::v1::GenerationRequest late = Request();
  *late.mutable_deadline() = ToProto(clock_.Now() + absl::Seconds(10));
  const std::string late_job = Create(late);
  clock_.Advance(absl::Seconds(11));
  RunToEnd(late_job);
  const auto tied = calls().Create(Request(), /*tied_to_caller=*/true);
  ASSERT_TRUE(tied.ok()) << tied.status();
  service_->CallerWentAway(tied->job.name(), /*deadline_passed=*/false);
  EXPECT_THAT(causes_.stops(),
              ElementsAre(StopCause::kCancelled, StopCause::kDeadline, StopCause::kCallerGone));
  EXPECT_THAT(causes_.writes(), testing::IsSupersetOf({"insert", "apply"}));
}

TEST_F(CausesTest, OfRequeues) {
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  // What a kill -9 leaves now.
  const TempFolder killed;
  CopyFolder(folder_.path() / "data", killed.path() / "data");
  Close();
  EXPECT_THAT(causes_.requeues(), ElementsAre(RequeueCause::kStopped));
  OpenIn(killed.path() / "data");
  EXPECT_THAT(causes_.requeues(), ElementsAre(RequeueCause::kStopped, RequeueCause::kLost));
}

// The weights are at fault and not the device: nothing gets better by running again.
TEST_F(CausesTest, AJobThatIsNotFiniteFailsAtOnceAndTheNextOneRuns) {
  Open();
  engine_->FailAt("Step_1_Inference", NotFiniteError("the latents are not finite"));
  const std::string failed = Create();
  RunToEnd(failed);
  const wan::v1::Job job = Get(failed);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(job.lost_attempts_size(), 0);
  EXPECT_EQ(job.error().code(), static_cast<int>(absl::StatusCode::kDataLoss));
  google::rpc::ErrorInfo info;
  ASSERT_GE(job.error().details_size(), 1);
  ASSERT_TRUE(job.error().details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "NOT_FINITE");
  EXPECT_THAT(causes_.requeues(), IsEmpty());
  EXPECT_TRUE(service_->models().IsReady("m"));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(CausesTest, OfJobsThatWereNotAccepted) {
  Open();
  wan::v1::GenerationRequest wrong = Request();
  wrong.set_width(33);
  EXPECT_FALSE(calls().Create(wrong, /*tied_to_caller=*/false).ok());
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = wrong;
  *batch.add_requests() = Request();
  EXPECT_FALSE(calls().SubmitBatch(batch).ok());
  RunToEnd(Create());
  EXPECT_THAT(causes_.rejected(), ElementsAre(std::pair(absl::StatusCode::kInvalidArgument, 1),
                                              std::pair(absl::StatusCode::kInvalidArgument, 2)));
}

TEST_F(CausesTest, EstimatesAreComparedWithWhatJobsTook) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  RunToEnd(Create());
  EXPECT_THAT(causes_.met(), IsEmpty());  // nobody knew how long the first takes
  engine_->TakeTime("Step_Inference", absl::Seconds(3));
  RunToEnd(Create());
  ASSERT_EQ(causes_.met().size(), 1u);
  const EstimateMet met = causes_.met().front();
  EXPECT_EQ(met.taken, absl::Seconds(9));
  EXPECT_NEAR(absl::ToDoubleSeconds(met.p50), 6, 1e-6);
  EXPECT_GT(met.p90, met.p50);
  EXPECT_EQ(met.slowest_stage, "") << "it was not slow";
  engine_->TakeTime("Step_Inference", absl::Seconds(30));
  RunToEnd(Create());
  EXPECT_EQ(causes_.met().back().slowest_stage, "Step_Inference");
  EXPECT_EQ(causes_.met().back().slowest_stage_taken, absl::Seconds(90));
}

TEST_F(CausesTest, WatchersAreCounted) {
  Open();
  const std::string job = Create();
  RunToEnd(job);
  EXPECT_EQ(service_->Stats().job_watchers, 0);
  {
    const auto first = service_->Watch(job, 0, [] {});
    const auto second = service_->Watch(job, 0, [] {});
    EXPECT_EQ(service_->Stats().job_watchers, 2);
  }
  EXPECT_EQ(service_->Stats().job_watchers, 0);
}

}  // namespace
}  // namespace wan::server
