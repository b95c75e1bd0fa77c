// LoRAs of a model that several device groups have: all of them have the same ones.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/groups_fixture.h"
#include "tests/server/jobs/model_answer.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::MODEL_STATE_FAILED;
using wan::v1::MODEL_STATE_READY;

// Gives a model other LoRAs and waits for the end.
class GroupLorasTest : public GroupsTest {
 protected:
  GroupLorasTest() {
    OpenGroups({});
    EXPECT_TRUE(Load({style_}).ok());
  }

  absl::StatusOr<wan::v1::Model> Load(std::vector<LoraSource> loras) {
    ModelAnswer answer;
    service_->model_operations().Load({"m", "synthetic:ti2v-5b", std::move(loras)}, answer.Take());
    return answer.Wait();
  }
  std::vector<LoraSource> LorasIn(int group) const {
    return engines_[static_cast<size_t>(group)]->Loaded().back().loras;
  }

  const LoraSource style_ = {"style", std::nullopt, "/style"};
  const LoraSource light_ = {"light", std::nullopt, "/light"};
  const std::map<int, wan::v1::ModelState> both_ready_ = {{0, MODEL_STATE_READY},
                                                          {1, MODEL_STATE_READY}};
};

TEST_F(GroupLorasTest, ALoraThatOneGroupRefusesIsTakenOffTheOthers) {
  for (const std::vector<LoraSource>& wanted :
       {std::vector{style_, light_}, std::vector{light_}, std::vector<LoraSource>{}}) {
    engines_[1]->FailAt("Model_Initialization", absl::DataLossError("LoRA 'light': is cut"));
    EXPECT_EQ(Load(wanted).status(), absl::DataLossError("LoRA 'light': is cut"));
    EXPECT_EQ(PlacesOf("m"), both_ready_);
    EXPECT_THAT(LorasIn(0), ElementsAre(style_));
    const wan::v1::Model model = *service_->models().Get("m");
    EXPECT_EQ(model.operations().rbegin()->error().message(), "LoRA 'light': is cut");
    EXPECT_FALSE(model.has_error());
  }
  EXPECT_THAT(engines_[0]->Loaded(), SizeIs(1 + 2 * 3));
  EXPECT_TRUE(Load({style_, light_}).ok());
  for (const int group : {0, 1}) EXPECT_THAT(LorasIn(group), ElementsAre(style_, light_));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(GroupLorasTest, AGroupThatCannotGoBackLosesTheModel) {
  absl::Mutex mutex;
  int changes = 0;
  const int64_t watcher = service_->models().AddWatcher([&](const std::string&) {
    const absl::MutexLock lock(&mutex);
    ++changes;
  });
  engines_[1]->Hold("Model_Initialization");
  engines_[1]->FailAt("Model_Initialization", absl::DataLossError("LoRA 'light': is cut"));
  ModelAnswer answer;
  service_->model_operations().Load({"m", "synthetic:ti2v-5b", {light_}}, answer.Take());
  for (int seen = 0; PlacesOf("m").at(0) != MODEL_STATE_READY;) {
    const absl::MutexLock lock(&mutex);
    const auto changed = [&] { return changes > seen; };
    mutex.Await(absl::Condition(&changed));
    seen = changes;
  }
  engines_[0]->FailAt("Model_Initialization", absl::DataLossError("LoRA 'style': is gone"));
  engines_[1]->Release("Model_Initialization");
  EXPECT_EQ(answer.Wait().status(), absl::DataLossError("LoRA 'light': is cut"));
  service_->models().RemoveWatcher(watcher);
  EXPECT_EQ(PlacesOf("m"),
            (std::map<int, wan::v1::ModelState>{{0, MODEL_STATE_FAILED}, {1, MODEL_STATE_READY}}));
  EXPECT_THAT(engines_[0]->Models(), IsEmpty()) << "nobody could use it";
  EXPECT_EQ(service_->models().Get("m")->placements(0).error().message(), "LoRA 'style': is gone");
  EXPECT_TRUE(Load({style_}).ok());
  EXPECT_EQ(PlacesOf("m"), both_ready_);
  EXPECT_THAT(LorasIn(0), ElementsAre(style_));
}

}  // namespace
}  // namespace wan::server
