// Reports: all that they say of a job, while it runs, when it has ended, and after a restart.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/digest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::Contains;
using testing::Not;

class ReportServiceTest : public ServiceTest {
 protected:
  wan::v1::JobReport Report(const std::string& job) {
    const auto report = service_->Report(job);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : wan::v1::JobReport();
  }

  static std::vector<std::string> Stages(const wan::v1::JobReport& report) {
    std::vector<std::string> stages;
    for (const auto& stage : report.stages()) stages.push_back(stage.stage());
    return stages;
  }
};

TEST_F(ReportServiceTest, StandsAloneAndOutlivesTheServer) {
  options_.server_version = "1.2.3";
  options_.server_revision = "abc";
  TimelinePoint point{absl::FromUnixSeconds(7), 0.25, {}};
  point.sample.cpu_percent = 31;
  engine_->monitor().SetTimeline({point});
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  const std::string name = Create(request);
  RunToEnd(name);
  const wan::v1::JobReport report = Report(name);
  EXPECT_EQ(report.name(), name + "/report");
  EXPECT_EQ(report.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(report.request().prompt(), "a cat");
  EXPECT_EQ(report.request().width(), 64) << "the defaults are filled in";
  EXPECT_TRUE(report.request().has_seed());
  EXPECT_EQ(report.request().image(), "");
  EXPECT_EQ(report.image_sha256(), Sha256Hex("PNG bytes"));
  EXPECT_EQ(report.image_bytes(), 9u);
  EXPECT_EQ(report.provenance().server_version(), "1.2.3");
  EXPECT_EQ(report.system().server_version(), "1.2.3");
  EXPECT_EQ(report.system().server_revision(), "abc");
  EXPECT_EQ(report.system().cpu_cores(), 4);
  ASSERT_GT(report.plan().stages_size(), 5);
  EXPECT_EQ(report.plan().stages(1).stage(), "T5_Encoding");
  EXPECT_GT(report.plan().stages(1).flops(), 0);
  ASSERT_EQ(report.timeline_size(), 1);
  EXPECT_EQ(report.timeline(0).cpu_percent(), 31);
  EXPECT_EQ(report.model_load().stage(), "Model_Initialization");
  EXPECT_THAT(Stages(report), Contains("Total_Execution"));
  EXPECT_THAT(Stages(report), Not(Contains("Model_Initialization"))) << "it is no part of the job";
  EXPECT_EQ(report.resumed_steps(), 0);

  Close();
  Open(/*load=*/false);
  EXPECT_EQ(Report(name).SerializeAsString(), report.SerializeAsString());
}

TEST_F(ReportServiceTest, GrowsWhileTheJobRuns) {
  Open();
  engine_->Hold("Step_1_Inference");
  const std::string name = Create();
  engine_->AwaitHeld("Step_1_Inference");
  const wan::v1::JobReport report = Report(name);
  EXPECT_EQ(report.state(), wan::v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(report.has_plan());
  EXPECT_THAT(Stages(report), Contains("Step_0_Inference"));
  EXPECT_THAT(Stages(report), Not(Contains("Step_1_Inference")));
  EXPECT_EQ(report.timeline_size(), 0);
  engine_->Release("Step_1_Inference");
  RunToEnd(name);
}

TEST_F(ReportServiceTest, AFailedJobHasWhatThereWas) {
  Open();
  engine_->FailAt("Step_1_Inference", absl::InternalError("broken"));
  const std::string name = Create();
  RunToEnd(name);
  const wan::v1::JobReport report = Report(name);
  EXPECT_EQ(report.state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_TRUE(report.has_plan());
  EXPECT_TRUE(report.has_system());
  EXPECT_EQ(report.stages(report.stages_size() - 1).error(), "broken");
}

TEST_F(ReportServiceTest, AnAttemptThatGoesOnSaysWhere) {
  options_.savepoint_interval = absl::ZeroDuration();
  Open();
  engine_->Hold("Step_1_Inference");
  const std::string name = Create();
  engine_->AwaitHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  Close();
  Open();
  RunToEnd(name);
  const wan::v1::JobReport report = Report(name);
  EXPECT_EQ(report.attempt(), 2);
  EXPECT_EQ(report.resumed_steps(), 2);
  EXPECT_THAT(Stages(report), Not(Contains("Step_0_Inference")));
}

}  // namespace
}  // namespace wan::server
