// Who gets a turn, when, and on which thread.
#include "server/jobs/turns.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TurnsTest : public testing::Test {
 protected:
  PostTask Later() {
    return [this](std::function<void()> task) { posted_.push_back(std::move(task)); };
  }
  void RunPosted() {
    const std::vector<std::function<void()>> tasks = std::exchange(posted_, {});
    for (const auto& task : tasks) task();
  }

  std::vector<std::function<void()>> posted_;
  std::vector<std::string> begun_;
  Turns turns_;
};

TEST_F(TurnsTest, AFreeKeyIsTakenAtOnceAndOthersWaitInLine) {
  std::vector<Turns::Turn> held;
  for (const char* who : {"a", "b", "c"}) {
    turns_.Take("key", Later(), [&, who](Turns::Turn turn) {
      begun_.emplace_back(who);
      held.push_back(std::move(turn));
    });
  }
  turns_.Take("other", Later(), [&](const Turns::Turn&) { begun_.emplace_back("other"); });
  EXPECT_THAT(begun_, ElementsAre("a", "other"));
  held.clear();
  EXPECT_THAT(begun_, ElementsAre("a", "other")) << "not on the thread that gives it on";
  RunPosted();
  EXPECT_THAT(begun_, ElementsAre("a", "other", "b"));
  RunPosted();
  EXPECT_THAT(begun_, ElementsAre("a", "other", "b")) << "b has it";
  held.clear();
  RunPosted();
  EXPECT_THAT(begun_, ElementsAre("a", "other", "b", "c"));
  held.clear();
  turns_.Take("key", Later(), [&](const Turns::Turn&) { begun_.emplace_back("d"); });
  EXPECT_EQ(begun_.back(), "d");
}

TEST_F(TurnsTest, SeveralKeysAreTakenTogether) {
  Turns::Turn held;
  turns_.Take("b", Later(), [&](Turns::Turn turn) { held = std::move(turn); });
  std::vector<Turns::Turn> all;
  turns_.TakeAll({"a", "b", "c"}, Later(), [&](std::vector<Turns::Turn> turns) {
    begun_.emplace_back("all");
    all = std::move(turns);
  });
  turns_.Take("a", Later(), [&](const Turns::Turn&) { begun_.emplace_back("a"); });
  EXPECT_THAT(begun_, IsEmpty());
  held = nullptr;
  RunPosted();
  EXPECT_THAT(begun_, ElementsAre("all"));
  all.clear();
  RunPosted();
  EXPECT_THAT(begun_, ElementsAre("all", "a"));
  turns_.TakeAll({}, Later(),
                 [&](const std::vector<Turns::Turn>&) { begun_.emplace_back("none"); });
  EXPECT_EQ(begun_.back(), "none");
}

TEST_F(TurnsTest, ATaskThatIsNeverCarriedOutGivesItsTurnOn) {
  Turns::Turn held;
  turns_.Take("key", Later(), [&](Turns::Turn turn) { held = std::move(turn); });
  turns_.Take("key", Later(), [&](const Turns::Turn&) { begun_.emplace_back("dropped"); });
  held = nullptr;
  posted_.clear();
  turns_.Take("key", Later(), [&](const Turns::Turn&) { begun_.emplace_back("next"); });
  EXPECT_THAT(begun_, ElementsAre("next"));
}

}  // namespace
}  // namespace wan::server
