#include "server/webhooks/webhook_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WebhookTurnsTest : public ::testing::Test {
 protected:
  // A report that is due after so many seconds.
  void Add(const std::string& host, const std::string& owner, int due = 0) {
    turns_.Add({++number_, host, owner, 0, kStart + absl::Seconds(due)});
  }
  // Takes all that may be taken so many seconds after the start; their numbers.
  std::vector<int64_t> TakeAll(int now = 0) {
    std::vector<int64_t> numbers;
    while (auto taken = turns_.Take(kStart + absl::Seconds(now))) {
      taken_[taken->number] = *taken;
      numbers.push_back(taken->number);
    }
    return numbers;
  }
  void End(int64_t number, std::optional<bool> answered = true) {
    turns_.End(taken_.at(number), answered);
  }

  const absl::Time kStart = absl::FromUnixSeconds(1'000'000);
  WebhookTurns turns_{8};
  int64_t number_ = 0;
  std::map<int64_t, WaitingReport> taken_;
};

TEST_F(WebhookTurnsTest, AHostHasHalfOfThePlacesAndNewcomersFindOne) {
  for (int i = 0; i < 10; ++i) Add("h", "");
  EXPECT_THAT(TakeAll(), ElementsAre(1, 2, 3, 4));
  Add("other", "");
  EXPECT_THAT(TakeAll(), ElementsAre(11));
  End(1);
  EXPECT_THAT(TakeAll(), ElementsAre(5));
}

TEST_F(WebhookTurnsTest, AnOwnerOfManyHostsHasHalfOfThePlaces) {
  for (int i = 0; i < 10; ++i) Add("h" + std::to_string(i), "eve");
  EXPECT_THAT(TakeAll(), SizeIs(4));
  Add("h0", "alice");
  EXPECT_THAT(TakeAll(), ElementsAre(11));
}

TEST_F(WebhookTurnsTest, OwnersTakeTurnsWhateverEachOfThemQueues) {
  WebhookTurns one(1);
  for (int i = 1; i <= 3; ++i) one.Add({i, "h", "eve", 0, kStart});
  for (int i = 4; i <= 5; ++i) one.Add({i, "h", "alice", 0, kStart + absl::Seconds(1)});
  one.Add({6, "other", "eve", 0, kStart});
  std::vector<int64_t> order;
  while (const auto taken = one.Take(kStart + absl::Seconds(1))) {
    order.push_back(taken->number);
    one.End(*taken, true);
  }
  // eve's two hosts take the turns of eve.
  EXPECT_THAT(order, ElementsAre(1, 4, 6, 5, 2, 3));
}

TEST_F(WebhookTurnsTest, AHostThatDidNotAnswerHasOnePlaceUntilItDoes) {
  for (int i = 0; i < 10; ++i) Add("h", "");
  TakeAll();
  End(1, false);
  EXPECT_THAT(TakeAll(), IsEmpty()) << "three are under way";
  EXPECT_EQ(turns_.NextDue(), std::nullopt);
  for (const int number : {2, 3, 4}) End(number, false);
  EXPECT_THAT(TakeAll(), ElementsAre(5));
  End(5, std::nullopt);  // it was not asked
  EXPECT_THAT(TakeAll(), ElementsAre(6));
  End(6, true);
  EXPECT_THAT(TakeAll(), ElementsAre(7, 8, 9, 10));
}

TEST_F(WebhookTurnsTest, HostsThatDoNotAnswerHaveHalfOfThePlacesTogether) {
  for (int i = 0; i < 8; ++i) {
    Add("silent" + std::to_string(i), "");
    End(TakeAll().front(), false);
  }
  for (int i = 0; i < 16; ++i) Add("silent" + std::to_string(i % 8), "");
  EXPECT_THAT(TakeAll(), SizeIs(4));
  Add("h", "");
  EXPECT_THAT(TakeAll(), ElementsAre(number_));
}

TEST_F(WebhookTurnsTest, ReportsOfAHostGoInTheOrderInWhichTheyAreDue) {
  Add("h", "", 5);
  Add("h", "", 3);
  Add("h", "", 3);
  EXPECT_THAT(TakeAll(2), IsEmpty());
  EXPECT_EQ(turns_.NextDue(), kStart + absl::Seconds(3));
  EXPECT_THAT(TakeAll(4), ElementsAre(2, 3));
  EXPECT_EQ(turns_.NextDue(), kStart + absl::Seconds(5));
  EXPECT_THAT(TakeAll(5), ElementsAre(1));
  EXPECT_EQ(turns_.NextDue(), std::nullopt);
}

}  // namespace
}  // namespace wan::server
