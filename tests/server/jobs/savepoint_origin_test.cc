#include "server/jobs/savepoint_origin.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/engine.h"
#include "engine/api/generation.h"
#include "engine/api/model_parts.h"
#include "server/store/file_digests.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

GenerationPlan PlanOfTwoSteps() {
  GenerationPlan plan;
  plan.sigmas = {1, 0.5, 0};
  plan.steps = {{.timestep = 1000, .guidance_scale = 5}, {.timestep = 500, .guidance_scale = 5}};
  return plan;
}

// A checkpoint whose folder has another name may have the same files and another schedule.
TEST(SavepointOriginTest, AllThatAPlanDecidesAboutItsStepsCounts) {
  const std::string before = ScheduleDigest(PlanOfTwoSteps());
  EXPECT_EQ(ScheduleDigest(PlanOfTwoSteps()), before);
  const std::vector<std::pair<const char*, std::function<void(GenerationPlan&)>>> changes = {
      {"sigma", [](GenerationPlan& plan) { plan.sigmas[1] = 0.50000006F; }},
      {"timestep", [](GenerationPlan& plan) { plan.steps[1].timestep = 500.00000000000006; }},
      {"expert", [](GenerationPlan& plan) { plan.steps[1].expert = ExpertRole::kLowNoise; }},
      {"guidance scale", [](GenerationPlan& plan) { plan.steps[1].guidance_scale = 1; }},
      {"reuse", [](GenerationPlan& plan) { plan.steps[1].reuses_blocks = true; }},
      {"guided", [](GenerationPlan& plan) { plan.guided = false; }},
      {"first step", [](GenerationPlan& plan) { plan.first_step = 1; }},
      {"number of steps", [](GenerationPlan& plan) { plan.steps.pop_back(); }}};
  for (const auto& [what, change] : changes) {
    GenerationPlan plan = PlanOfTwoSteps();
    change(plan);
    EXPECT_NE(ScheduleDigest(plan), before) << what;
  }
}

TEST(SavepointOriginTest, TheScheduleCounts) {
  FileDigests digests("", [](const absl::Status&) {});
  const wan::v1::Job job;
  const ModelDescription model;
  const SavepointOrigin before = OriginOf(job, {.schedule = "a"}, model, digests);
  EXPECT_EQ(OriginOf(job, {.schedule = "a"}, model, digests).request, before.request);
  EXPECT_NE(OriginOf(job, {.schedule = "b"}, model, digests).request, before.request);
}

TEST(SavepointOriginTest, TheCpuCountsIfItComputes) {
  FileDigests digests("", [](const absl::Status&) {});
  const wan::v1::Job job;
  const ModelDescription model;
  Computation one{.cpu_name = "one"};
  Computation other{.cpu_name = "other"};
  EXPECT_EQ(OriginOf(job, one, model, digests).request,
            OriginOf(job, other, model, digests).request);
  for (Computation* const computation : {&one, &other}) {
    computation->provenance.add_cpu_components("text_encoder");
  }
  EXPECT_NE(OriginOf(job, one, model, digests).request,
            OriginOf(job, other, model, digests).request);
}

}  // namespace
}  // namespace wan::server
