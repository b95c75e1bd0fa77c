#include "engine/models/wan/chunk_outlet.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace wan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ChunkOutletTest : public testing::Test {
 protected:
  static at::Tensor Chunk(float value, at::ScalarType dtype = at::kFloat) {
    return at::full({3, 4, 8, 8}, value, dtype);
  }

  std::vector<float> handed_on_;  // a value of each chunk
  absl::Status answer_;
  const VideoAutoencoder::FrameSink sink_ = [this](const at::Tensor& frames) {
    EXPECT_EQ(frames.scalar_type(), at::kFloat);
    EXPECT_TRUE(frames.is_contiguous());
    handed_on_.push_back(frames.flatten()[0].item<float>());
    return answer_;
  };
};

TEST_F(ChunkOutletTest, WithoutChecksAChunkGoesAtOnce) {
  ChunkOutlet outlet(/*checks=*/false, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(0.25f)).value());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f));
  EXPECT_TRUE(outlet.Add(Chunk(kInfinity)).value()) << "nobody asked";
  EXPECT_THAT(handed_on_, ElementsAre(0.25f, 1.0f));
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_EQ(outlet.reached(), 2);
}

// The device has the next chunk's work before the host waits for this one.
TEST_F(ChunkOutletTest, ACheckedChunkGoesWhenTheNextOneIsQueued) {
  ChunkOutlet outlet(/*checks=*/true, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(0.25f)).value());
  EXPECT_THAT(handed_on_, IsEmpty());
  EXPECT_TRUE(outlet.Add(Chunk(0.5f)).value());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f));
  EXPECT_TRUE(outlet.Add(Chunk(-0.5f)).value());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f, 0.5f));
  EXPECT_EQ(outlet.reached(), 2);
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f, 0.5f, -0.5f));
  EXPECT_EQ(outlet.reached(), 3);
}

TEST_F(ChunkOutletTest, WhatIsNotFiniteEndsThePass) {
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kHalf}) {
      handed_on_.clear();
      ChunkOutlet outlet(/*checks=*/true, 0, sink_);
      at::Tensor broken = Chunk(0, dtype);
      broken[1][2][3][4] = value;
      EXPECT_TRUE(outlet.Add(Chunk(0.25f, dtype)).value());
      EXPECT_TRUE(outlet.Add(broken).value()) << "nobody knows yet";
      EXPECT_FALSE(outlet.Add(Chunk(0.5f, dtype)).value());
      EXPECT_TRUE(outlet.Finish().ok());
      EXPECT_THAT(handed_on_, ElementsAre(0.25f));
      EXPECT_EQ(outlet.reached(), 1);
    }
  }
}

TEST_F(ChunkOutletTest, TheLastChunkIsCheckedAsWell) {
  ChunkOutlet outlet(/*checks=*/true, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(0.25f)).value());
  EXPECT_TRUE(outlet.Add(Chunk(kInfinity)).value());
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f));
  EXPECT_EQ(outlet.reached(), 1);
}

TEST_F(ChunkOutletTest, ASumBeyondFp16IsFinite) {
  ChunkOutlet outlet(/*checks=*/true, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(6e4f, at::kHalf)).value());
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_THAT(handed_on_, ElementsAre(1.0f));
}

TEST_F(ChunkOutletTest, WhatAnEarlierPassHandedOnIsDropped) {
  for (const bool checks : {false, true}) {
    handed_on_.clear();
    ChunkOutlet outlet(checks, /*first=*/2, sink_);
    for (const float value : {0.1f, kInfinity, 0.25f, 0.5f}) {
      EXPECT_TRUE(outlet.Add(Chunk(value)).value());
    }
    EXPECT_TRUE(outlet.Finish().ok());
    EXPECT_THAT(handed_on_, ElementsAre(0.25f, 0.5f));
    EXPECT_EQ(outlet.reached(), 4);
  }
}

TEST_F(ChunkOutletTest, TheSinksErrorComesBack) {
  answer_ = absl::DataLossError("full");
  ChunkOutlet unchecked(/*checks=*/false, 0, sink_);
  EXPECT_EQ(unchecked.Add(Chunk(0)).status(), answer_);
  ChunkOutlet checked(/*checks=*/true, 0, sink_);
  EXPECT_TRUE(checked.Add(Chunk(0)).value());
  EXPECT_EQ(checked.Add(Chunk(0)).status(), answer_);
  EXPECT_EQ(checked.reached(), 0);
  ChunkOutlet last(/*checks=*/true, 0, sink_);
  EXPECT_TRUE(last.Add(Chunk(0)).value());
  EXPECT_EQ(last.Finish(), answer_);
}

}  // namespace
}  // namespace wan
