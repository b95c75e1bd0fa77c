#include "engine/models/wan/chunk_outlet.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/api/errors.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
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

TEST_F(ChunkOutletTest, WhereNoPrecisionIsWiderAChunkGoesAtOnce) {
  ChunkOutlet outlet(/*has_wider=*/false, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(0.25f)).value());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f));
  EXPECT_TRUE(outlet.Add(Chunk(2.0f)).value());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f, 1.0f));
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_EQ(outlet.reached(), 2);
}

// Cut off at 1, an infinite value would look like white.
TEST_F(ChunkOutletTest, WhereNoPrecisionIsWiderWhatIsNotFiniteIsAnError) {
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      at::Tensor broken = Chunk(0, dtype);
      broken[1][2][3][4] = value;
      ChunkOutlet outlet(/*has_wider=*/false, 0, sink_);
      EXPECT_TRUE(outlet.Add(Chunk(0.25f, dtype)).value());
      EXPECT_TRUE(outlet.Add(broken.clone()).value()) << "nobody knows yet";
      const absl::Status found = outlet.Add(Chunk(0.5f, dtype)).status();
      EXPECT_TRUE(IsNotFinite(found)) << found;
      EXPECT_THAT(std::string(found.message()), HasSubstr("latent frame 2"));
      EXPECT_TRUE(outlet.Finish().ok());

      ChunkOutlet last(/*has_wider=*/false, 0, sink_);
      EXPECT_TRUE(last.Add(Chunk(0.25f, dtype)).value());
      EXPECT_TRUE(last.Add(broken.clone()).value());
      EXPECT_TRUE(IsNotFinite(last.Finish()));
    }
  }
}

// The device has the next chunk's work before the host waits for this one.
TEST_F(ChunkOutletTest, WhereAPrecisionIsWiderAChunkGoesWhenTheNextOneIsQueued) {
  ChunkOutlet outlet(/*has_wider=*/true, 0, sink_);
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
      ChunkOutlet outlet(/*has_wider=*/true, 0, sink_);
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
  ChunkOutlet outlet(/*has_wider=*/true, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(0.25f)).value());
  EXPECT_TRUE(outlet.Add(Chunk(kInfinity)).value());
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_THAT(handed_on_, ElementsAre(0.25f));
  EXPECT_EQ(outlet.reached(), 1);
}

TEST_F(ChunkOutletTest, ASumBeyondFp16IsFinite) {
  ChunkOutlet outlet(/*has_wider=*/true, 0, sink_);
  EXPECT_TRUE(outlet.Add(Chunk(6e4f, at::kHalf)).value());
  EXPECT_TRUE(outlet.Finish().ok());
  EXPECT_THAT(handed_on_, ElementsAre(1.0f));
}

TEST_F(ChunkOutletTest, WhatAnEarlierPassHandedOnIsDropped) {
  for (const bool has_wider : {false, true}) {
    handed_on_.clear();
    ChunkOutlet outlet(has_wider, /*first=*/2, sink_);
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
  ChunkOutlet at_once(/*has_wider=*/false, 0, sink_);
  EXPECT_EQ(at_once.Add(Chunk(0)).status(), answer_);
  ChunkOutlet later(/*has_wider=*/true, 0, sink_);
  EXPECT_TRUE(later.Add(Chunk(0)).value());
  EXPECT_EQ(later.Add(Chunk(0)).status(), answer_);
  EXPECT_EQ(later.reached(), 0);
  ChunkOutlet last(/*has_wider=*/true, 0, sink_);
  EXPECT_TRUE(last.Add(Chunk(0)).value());
  EXPECT_EQ(last.Finish(), answer_);
}

}  // namespace
}  // namespace wan
