#include "engine/group/handover.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace wan {
namespace {

TEST(HandoverTest, GivesEverythingInOrder) {
  Handover<std::unique_ptr<int>> handover;
  std::vector<int> taken;
  {
    const std::jthread taker([&] {
      for (int i = 0; i < 100; ++i) taken.push_back(**handover.Take());
    });
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(handover.Put(std::make_unique<int>(i)));
  }
  ASSERT_EQ(taken.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(taken[i], i);
}

TEST(HandoverTest, ClosingLeavesNobodyWaiting) {
  Handover<int> full;
  EXPECT_TRUE(full.Put(1));
  Handover<int> empty;
  bool put = true;
  bool took = true;
  {
    const std::jthread putter([&] { put = full.Put(2); });
    const std::jthread taker([&] { took = empty.Take().has_value(); });
    full.Close();
    empty.Close();
  }
  EXPECT_FALSE(put);
  EXPECT_FALSE(took);
  EXPECT_FALSE(full.Take().has_value()) << "what was there is gone";
}

}  // namespace
}  // namespace wan
