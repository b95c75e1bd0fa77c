#include "engine/models/wan/timestep_rows.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FindTimestepRows, OneForAll) {
  const TimestepRows rows = FindTimestepRows(at::full({2, 5}, 937.5, at::kFloat), 2, 5).value();
  EXPECT_THAT(rows.timesteps, ElementsAre(937.5));
  EXPECT_THAT(rows.index, IsEmpty());
}

TEST(FindTimestepRows, OneForEachEntry) {
  const TimestepRows rows =
      FindTimestepRows(at::tensor({7, 3, 7}, at::kLong), /*batch=*/3, /*tokens=*/2).value();
  EXPECT_THAT(rows.timesteps, ElementsAre(7, 3));
  EXPECT_THAT(rows.index, ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(FindTimestepRows, OneForEachToken) {
  const at::Tensor timestep = at::tensor({0, 0, 968, 968, 0, 968, 5, 0}, at::kFloat).view({2, 4});
  const TimestepRows rows = FindTimestepRows(timestep, 2, 4).value();
  EXPECT_THAT(rows.timesteps, ElementsAre(0, 968, 5));
  EXPECT_THAT(rows.index, ElementsAre(0, 0, 1, 1, 0, 1, 2, 0));
}

// A view's values, not its memory.
TEST(FindTimestepRows, ReadsStridedTimesteps) {
  const at::Tensor timestep = at::tensor({1, 2, 1, 4}, at::kDouble).view({2, 2}).t();
  const TimestepRows rows = FindTimestepRows(timestep, 2, 2).value();
  EXPECT_THAT(rows.timesteps, ElementsAre(1, 2, 4));
  EXPECT_THAT(rows.index, ElementsAre(0, 0, 1, 2));
}

}  // namespace
}  // namespace wan
