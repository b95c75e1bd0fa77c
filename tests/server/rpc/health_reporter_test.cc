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

  std::function<void(bool)> Publish() {
    return [this](bool serving) {
      if (published_.empty() || published_.back() != serving) published_.push_back(serving);
    };
  }

  std::vector<bool> published_;  // changes only
};

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
