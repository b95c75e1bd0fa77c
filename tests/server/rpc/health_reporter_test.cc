#include "server/rpc/health_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::server {
namespace {

using ::testing::ElementsAre;

class HealthReporterTest : public ::testing::Test {
 protected:
  static wan::v1::Model Model(const std::string& name, wan::v1::ModelState state) {
    wan::v1::Model model;
    model.set_name("models/" + name);
    model.set_state(state);
    return model;
  }

  HealthReporter::Publish Publish() {
    return [this](const NotServingReasons& reasons) {
      const bool serving = reasons.empty();
      if (published_.empty() || published_.back() != serving) published_.push_back(serving);
      reasons_ = reasons;
    };
  }

  // The codes of what was published last.
  std::vector<std::string> Codes() const {
    std::vector<std::string> codes;
    for (const NotServing& reason : reasons_) codes.push_back(reason.reason);
    return codes;
  }

  std::vector<bool> published_;  // changes only
  NotServingReasons reasons_;
};

TEST_F(HealthReporterTest, NamesEveryReasonThatHolds) {
  HealthReporter health({"a", "b"});
  health.Start(Publish());
  EXPECT_THAT(OneLine(reasons_), "model 'a' waits to be loaded; model 'b' waits to be loaded");
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_LOADING));
  wan::v1::Model failed = Model("b", wan::v1::MODEL_STATE_FAILED);
  failed.mutable_error()->set_message("/models/secret/vae.pth: is cut off");
  health.OnModelState(failed);
  EXPECT_THAT(Codes(), ElementsAre("MODEL_LOADING", "MODEL_FAILED"));
  EXPECT_THAT(OneLine(reasons_),
              "model 'a' is being loaded; model 'b' could not be loaded (vae.pth: "
              "is cut off); try again with 'wanctl models load b'");
  health.OnStorage(absl::ResourceExhaustedError("writing /data/jobs.db: No space left on device"));
  health.OnDiskRoom(absl::ResourceExhaustedError("the disk has 1 byte free"));
  health.OnDraining();
  health.SetAccepting(false);
  health.OnDeviceLost(DeviceLoss::kError, absl::UnavailableError("Xid 79"));
  EXPECT_THAT(Codes(), ElementsAre("DRAINING", "DEVICE_LOST", "STORAGE_UNAVAILABLE", "DISK_FULL",
                                   "CONNECTIONS_FULL", "MODEL_LOADING", "MODEL_FAILED"));
  EXPECT_EQ(health.Reasons(), reasons_);
  EXPECT_EQ(health.ServerReasons().size(), 5u) << "those of models are left out";
  EXPECT_THAT(OneLine(reasons_), testing::Not(testing::HasSubstr("/data")));
  health.Stop();
  EXPECT_EQ(Codes().front(), "STOPPING");
}

TEST_F(HealthReporterTest, ServesAgainWhenTheLastReasonIsGone) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.OnDiskRoom(absl::ResourceExhaustedError("the disk has 1 byte free"));
  health.OnDraining();
  EXPECT_THAT(Codes(), ElementsAre("DRAINING", "DISK_FULL"));
  health.OnUndrained();
  EXPECT_THAT(Codes(), ElementsAre("DISK_FULL"));
  health.OnDiskRoom(absl::OkStatus());
  EXPECT_THAT(published_, ElementsAre(false, true, false, true));
}

TEST_F(HealthReporterTest, AModelThatIsUnloadedOrWasNeverConfiguredIsNotBlamed) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.OnModelState(Model("other", wan::v1::MODEL_STATE_FAILED));
  EXPECT_THAT(reasons_, testing::IsEmpty());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_UNLOADED));
  EXPECT_THAT(Codes(), ElementsAre("NO_MODEL"));
  health.OnModelState(Model("other", wan::v1::MODEL_STATE_LOADING));
  EXPECT_THAT(Codes(), ElementsAre("MODEL_LOADING"));
}

TEST_F(HealthReporterTest, ServesWhenEveryLoadHasEndedAndOneModelIsReady) {
  HealthReporter health({"a", "b"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_LOADING));
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false)) << "b has not ended";
  health.OnModelState(Model("b", wan::v1::MODEL_STATE_LOADING));
  health.OnModelState(Model("b", wan::v1::MODEL_STATE_FAILED));
  EXPECT_THAT(published_, ElementsAre(false, true));
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_UNLOADED));
  EXPECT_THAT(published_, ElementsAre(false, true, false));
  // A later load does not take the server out of service while another model is ready.
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.OnModelState(Model("c", wan::v1::MODEL_STATE_LOADING));
  EXPECT_THAT(published_, ElementsAre(false, true, false, true));
}

TEST_F(HealthReporterTest, DoesNotServeWithoutADevice) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false, true));
  health.OnDeviceLost(DeviceLoss::kError, absl::UnavailableError("lost"));
  health.OnModelState(Model("b", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false, true, false)) << "for good";
}

TEST_F(HealthReporterTest, DoesNotServeWhileTheStorageRefusesWrites) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.OnStorage(absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(published_, ElementsAre(false, true, false));
  health.OnStorage(absl::OkStatus());
  EXPECT_THAT(published_, ElementsAre(false, true, false, true));
}

TEST_F(HealthReporterTest, DoesNotServeWithFailedModelsOnly) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_FAILED));
  EXPECT_THAT(published_, ElementsAre(false));
}

TEST_F(HealthReporterTest, WithoutConfiguredModelsTheFirstLoadedOneCounts) {
  HealthReporter health({});
  health.Start(Publish());
  EXPECT_THAT(published_, ElementsAre(false));
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false, true));
}

TEST_F(HealthReporterTest, WhatHappenedBeforeTheStartCounts) {
  HealthReporter health({"a"});
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.Start(Publish());
  EXPECT_THAT(published_, ElementsAre(true));
}

TEST_F(HealthReporterTest, DoesNotServeWhileNoConnectionIsAccepted) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.SetAccepting(false);
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false));
  health.SetAccepting(true);
  health.SetAccepting(false);
  EXPECT_THAT(published_, ElementsAre(false, true, false));
}

TEST_F(HealthReporterTest, ADrainIsForGood) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.OnDraining();
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false, true, false));
}

TEST_F(HealthReporterTest, StopIsForGood) {
  HealthReporter health({"a"});
  health.Start(Publish());
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  health.Stop();
  health.OnModelState(Model("a", wan::v1::MODEL_STATE_READY));
  EXPECT_THAT(published_, ElementsAre(false, true, false));
}

}  // namespace
}  // namespace wan::server
