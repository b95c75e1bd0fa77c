// Jobs of higher priority that take over at a step: the decision, what becomes of both jobs, and
// that every job ends, however many there are.
#include "server/jobs/preemption.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using wan::v1::JOB_STATE_COMPLETED;

PreemptionCase Case(int running, int waiting, std::optional<absl::Duration> left,
                    std::optional<absl::Duration> cost) {
  PreemptionCase jobs;
  jobs.running_priority = running;
  jobs.waiting_priority = waiting;
  jobs.left = left;
  jobs.cost = cost;
  return jobs;
}

TEST(PreemptionPaysTest, ThePriorityMustBeHigherByTheGap) {
  const auto pays = [](int running, int waiting, int gap) {
    return PreemptionPays(Case(running, waiting, absl::Seconds(10), absl::Seconds(1)), gap);
  };
  EXPECT_FALSE(pays(0, 4, 5));
  EXPECT_TRUE(pays(0, 5, 5));
  EXPECT_TRUE(pays(-100, 100, 200));
  EXPECT_FALSE(pays(0, 0, 1));
  EXPECT_FALSE(pays(5, 0, 1));
  EXPECT_FALSE(pays(-100, 100, 0)) << "0 turns it off";
}

TEST(PreemptionPaysTest, TheSwitchMustTakeLessThanTheRunningJobNeeds) {
  const auto pays = [](std::optional<absl::Duration> left, std::optional<absl::Duration> cost) {
    return PreemptionPays(Case(0, 1, left, cost), 1);
  };
  EXPECT_TRUE(pays(absl::Seconds(10), absl::Seconds(9.9)));
  EXPECT_FALSE(pays(absl::Seconds(10), absl::Seconds(10)));
  EXPECT_FALSE(pays(absl::ZeroDuration(), absl::ZeroDuration()));
  EXPECT_FALSE(pays(std::nullopt, absl::ZeroDuration()));
  EXPECT_FALSE(pays(absl::Hours(1), std::nullopt));
}

class PreemptionTest : public ServiceTest {
 protected:
  PreemptionTest() {
    options_.savepoint_interval = absl::Hours(1);
    options_.preempt_priority_gap = 5;
    engine_->TakeTime("Step_Inference", absl::Seconds(10));
  }

  static wan::v1::GenerationRequest Prioritized(int priority, int steps = 3,
                                                const std::string& model = "m") {
    wan::v1::GenerationRequest request = Request(absl::StrCat("priority ", priority));
    request.set_priority(priority);
    request.set_steps(steps);
    request.set_model(model);
    return request;
  }

  // Opens, with the times of every stage known.
  void OpenLearned() {
    Open();
    RunToEnd(Create(Prioritized(0)));
  }

  // A job that runs and stands in `stage`.
  std::string CreateHeld(const std::string& stage, const wan::v1::GenerationRequest& request) {
    engine_->Hold(stage);
    std::string name = Create(request);
    engine_->AwaitHeld(stage);
    return name;
  }

  // Lets the engine go on and waits for both ends.
  void Finish(const std::string& stage, const std::string& first, const std::string& second) {
    engine_->Release(stage);
    for (const std::string& job : {first, second}) {
      RunToEnd(job);
      EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
    }
  }

  // The prompts of all attempts, in their order.
  std::vector<std::string> Attempts() {
    std::vector<std::string> prompts;
    for (const GenerationRequest& request : engine_->Generated()) prompts.push_back(request.prompt);
    return prompts;
  }
};

TEST_F(PreemptionTest, AJobOfHigherPriorityTakesOverAtTheEndOfAStep) {
  options_.max_attempts = 1;
  Open();
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0));
  const std::string high = Create(Prioritized(5));
  Finish("Step_0_Inference", high, low);
  const std::vector<std::string> events = Brief(RunToEnd(low));
  EXPECT_THAT(events, Contains(absl::StrCat("requeued preempted by ", high)));
  EXPECT_THAT(events, Contains("resumed 1"));
  EXPECT_EQ(std::count(events.begin(), events.end(), "end Step_0_Inference"), 1)
      << "no step is computed twice";
  EXPECT_EQ(std::count(events.begin(), events.end(), "end Step_1_Inference"), 1);
  EXPECT_EQ(Get(low).attempt(), 2);
  EXPECT_EQ(Get(low).lost_attempts_size(), 0);
  EXPECT_EQ(Get(high).attempt(), 1);
  EXPECT_THAT(Attempts(), ElementsAre("priority 0", "priority 5", "priority 0"));
}

TEST_F(PreemptionTest, ASmallerGapAndNoSettingLeaveTheRunningJobAlone) {
  for (const int gap : {6, 0}) {
    options_.preempt_priority_gap = gap;
    Open();
    const std::string low = CreateHeld("Step_0_Inference", Prioritized(0));
    const std::string high = Create(Prioritized(5));
    Finish("Step_0_Inference", low, high);
    EXPECT_EQ(Get(low).attempt(), 1) << gap;
    Close();
  }
}

TEST_F(PreemptionTest, APriorityThatIsRaisedLaterCounts) {
  Open();
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0));
  const std::string high = Create(Prioritized(1));
  wan::v1::UpdateJobRequest update;
  update.mutable_job()->set_name(high);
  update.mutable_job()->mutable_request()->set_priority(9);
  update.mutable_update_mask()->add_paths("request.priority");
  ASSERT_TRUE(calls().Update(update).ok());
  Finish("Step_0_Inference", high, low);
  EXPECT_EQ(Get(low).attempt(), 2);
}

TEST_F(PreemptionTest, AfterTheLastStepNobodyTakesOver) {
  engine_->TakeTime("VAE_Decoding", absl::Hours(1));
  OpenLearned();
  const std::string low = CreateHeld("Step_2_Inference", Prioritized(0));
  const std::string high = Create(Prioritized(5));
  Finish("Step_2_Inference", low, high);
  EXPECT_EQ(Get(low).attempt(), 1);
}

TEST_F(PreemptionTest, NobodyTakesOverIfTheSwitchTakesLongerThanTheRest) {
  engine_->TakeTime("T5_Encoding", absl::Seconds(20));  // two steps: as long as encoding again
  OpenLearned();
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0));
  const std::string high = Create(Prioritized(5));
  Finish("Step_0_Inference", low, high);
  EXPECT_EQ(Get(low).attempt(), 1);
  // With one step more it is worth it.
  const std::string longer = CreateHeld("Step_0_Inference", Prioritized(0, /*steps=*/4));
  Finish("Step_0_Inference", longer, Create(Prioritized(5)));
  EXPECT_EQ(Get(longer).attempt(), 2);
}

TEST_F(PreemptionTest, AnotherModelCountsWithTheTimesOfLoading) {
  engine_->TakeTime("Model_Initialization", absl::Seconds(10));
  OpenLearned();
  LoadModel("n");
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0, /*steps=*/3));
  Finish("Step_0_Inference", low, Create(Prioritized(5, 3, "n")));
  EXPECT_EQ(Get(low).attempt(), 1) << "20 s are left, and two models to load";
  const std::string longer = CreateHeld("Step_0_Inference", Prioritized(0, /*steps=*/4));
  Finish("Step_0_Inference", longer, Create(Prioritized(5, 3, "n")));
  EXPECT_EQ(Get(longer).attempt(), 2);
}

TEST_F(PreemptionTest, AJobWhoseModelIsNotLoadedTakesNothingOver) {
  Open();
  LoadModel("n");
  engine_->Hold("T5_Encoding");
  const std::string waiting = Create(Prioritized(100, 3, "n"));
  engine_->AwaitHeld("T5_Encoding");
  // A new process knows the job, and its model is not loaded.
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  Close();
  engine_->Release("T5_Encoding");
  Open();
  const std::string low = Create(Prioritized(0));
  RunToEnd(low);
  EXPECT_EQ(Get(low).attempt(), 1);
  EXPECT_EQ(Get(waiting).attempt(), 1);
}

TEST_F(PreemptionTest, AJobOfACallerGoesOnLaterAndItsStreamShowsIt) {
  Open();
  engine_->Hold("Step_0_Inference");
  const auto created = calls().Create(Prioritized(0), /*tied_to_caller=*/true);
  ASSERT_TRUE(created.ok()) << created.status();
  engine_->AwaitHeld("Step_0_Inference");
  const std::string high = Create(Prioritized(5));
  Finish("Step_0_Inference", high, created->job.name());
  EXPECT_THAT(Brief(RunToEnd(created->job.name())), Contains("resumed 1"));
}

TEST_F(PreemptionTest, ACancelOfThePreemptedJobHolds) {
  Open();
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0));
  const std::string high = Create(Prioritized(5));
  ASSERT_TRUE(calls().Cancel(low, "CancelJob").ok());
  engine_->Release("Step_0_Inference");
  EXPECT_EQ(Brief(RunToEnd(low).back()), "cancelled CancelJob");
  RunToEnd(high);
}

TEST_F(PreemptionTest, TheEstimatesOfAResumedJobLeaveOutWhatIsDone) {
  Open();
  const std::string low = CreateHeld("Step_0_Inference", Prioritized(0, /*steps=*/5));
  const std::string high = Create(Prioritized(5, /*steps=*/2));
  engine_->Hold("Step_2_Inference");  // which that one does not have
  engine_->Release("Step_0_Inference");
  RunToEnd(high);
  BlockingReader reader(*service_, low);
  reader.Until([](const auto& event) { return event.has_resumed(); });
  engine_->AwaitHeld("Step_2_Inference");
  EXPECT_EQ(Get(low).eta_seconds(), 30) << "steps 2, 3 and 4";
  engine_->Release("Step_2_Inference");
  RunToEnd(low);
}

// Jobs with random priorities come while others run: all of them end, none computes a step twice,
// and each gives way only to jobs whose priority is higher by the gap, after a step of its own.
class RandomPrioritiesTest : public PreemptionTest, public testing::WithParamInterface<int> {};

TEST_P(RandomPrioritiesTest, EveryJobEnds) {
  constexpr size_t kJobs = 120;
  const int gap = GetParam();
  options_.preempt_priority_gap = gap;
  options_.queue_capacity = kJobs;
  Open();
  std::mt19937 random(static_cast<unsigned>(gap));
  const auto draw = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  // At least one pair of which one takes over.
  std::map<std::string, int> priorities;
  std::vector<std::string> jobs;
  const auto add = [&](const std::string& job, int priority) {
    jobs.push_back(job);
    priorities[job] = priority;
  };
  add(CreateHeld("Step_0_Inference", Prioritized(-100, 6)), -100);
  add(Create(Prioritized(100)), 100);
  engine_->Release("Step_0_Inference");
  while (jobs.size() < kJobs) {
    // Some at once, which meet the queue in whatever state it is.
    for (int i = draw(1, 8); i > 0 && jobs.size() < kJobs; --i) {
      const int priority = draw(-100, 100);
      add(Create(Prioritized(priority, draw(1, 6))), priority);
    }
    RunToEnd(jobs[static_cast<size_t>(draw(0, static_cast<int>(jobs.size()) - 1))]);
  }
  int preemptions = 0;
  for (const std::string& job : jobs) {
    std::map<std::string, int> finished;  // steps, and how often they were computed
    int steps_of_attempt = 0;
    for (const wan::v1::Event& event : RunToEnd(job)) {
      const std::string& stage = event.stage_finished().stage();
      if (absl::EndsWith(stage, "_Inference") && event.stage_finished().error().empty()) {
        ++steps_of_attempt;
        EXPECT_EQ(++finished[stage], 1) << job << " " << stage;
      }
      if (!event.has_requeued()) continue;
      ++preemptions;
      EXPECT_GE(steps_of_attempt, 1) << "an attempt makes progress before it gives way";
      steps_of_attempt = 0;
      const std::string by(absl::StripPrefix(event.requeued().reason(), "preempted by "));
      EXPECT_GE(priorities.at(by) - priorities.at(job), gap) << event.requeued().reason();
    }
    const wan::v1::Job ended = Get(job);
    EXPECT_EQ(ended.state(), JOB_STATE_COMPLETED);
    EXPECT_EQ(ended.lost_attempts_size(), 0);
    EXPECT_EQ(static_cast<int>(finished.size()), ended.request().steps());
  }
  EXPECT_GE(preemptions, 1);
}

INSTANTIATE_TEST_SUITE_P(Gaps, RandomPrioritiesTest, testing::Values(1, 20, 150));

}  // namespace
}  // namespace wan::server
