#include "engine/pipeline/tiled_decode.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/planning/tile_geometry.h"

namespace wan {
namespace {

constexpr int64_t kScale = 4;

// A decoder that looks at nothing around a latent, so that tiles must give exactly the whole: every
// latent's first channel becomes a square of pixels, and one frame or, after the first, four.
class NearsightedVae final : public VideoAutoencoder {
 public:
  NearsightedVae() {
    config_.z_dim = 2;
    config_.stride_spatial = kScale;
    config_.stride_temporal = 4;
  }
  const VaeConfig& config() const override { return config_; }
  absl::StatusOr<at::Tensor> Encode(const at::Tensor&, const VaePass&) const override {
    return absl::UnimplementedError("not needed");
  }
  absl::Status Decode(const at::Tensor& latents, const FrameSink& sink,
                      const VaePass& pass) const override {
    largest_tile_ = std::max(largest_tile_, latents.size(2) * latents.size(3));
    ++decodings_;
    for (int64_t t = 0; t < latents.size(1); ++t) {
      if (pass.gate.RequestedStop()) return absl::CancelledError("stopped");
      const at::Tensor pixels =
          latents.narrow(0, 0, 1).narrow(1, t, 1).repeat_interleave(kScale, 2).repeat_interleave(
              kScale, 3);
      const at::Tensor frames = pixels.repeat({3, t == 0 ? 1 : 4, 1, 1});
      if (absl::Status status = sink(frames); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  int64_t WeightBytes() const override { return 0; }

  mutable int64_t largest_tile_ = 0;
  mutable int decodings_ = 0;

 private:
  VaeConfig config_;
};

at::Tensor Decode(const VideoAutoencoder& vae, const at::Tensor& latents, const TileGrid& grid) {
  std::vector<at::Tensor> parts;
  const absl::Status status = DecodeTiled(vae, latents, grid,
                                          [&](const at::Tensor& frames) {
                                            EXPECT_TRUE(frames.is_contiguous());
                                            EXPECT_EQ(frames.size(1), parts.empty() ? 1 : 4);
                                            parts.push_back(frames);
                                            return absl::OkStatus();
                                          },
                                          {});
  EXPECT_TRUE(status.ok()) << status;
  return at::cat(parts, 1);
}

at::Tensor SomeLatents(int64_t height, int64_t width) {
  return at::arange(2 * 3 * height * width, at::kFloat).sin().view({2, 3, height, width});
}

TEST(TiledDecodeTest, TilesFadeIntoEachOtherWithoutASeam) {
  const NearsightedVae vae;
  for (const auto& [height, width] : {std::pair{44, 80}, std::pair{30, 53}, std::pair{17, 90}}) {
    const at::Tensor latents = SomeLatents(height, width);
    const at::Tensor whole = Decode(vae, latents, {});
    EXPECT_EQ(whole.size(1), 9);
    for (const TileGrid& grid : TileGrids({3, height, width})) {
      const at::Tensor tiled = Decode(vae, latents, grid);
      EXPECT_TRUE(at::allclose(tiled, whole, /*rtol=*/0, /*atol=*/1e-6))
          << height << "x" << width << " in " << grid.rows << "x" << grid.columns;
    }
  }
}

TEST(TiledDecodeTest, OneTileIsTheWholeFrameItself) {
  const NearsightedVae vae;
  const at::Tensor latents = SomeLatents(20, 20);
  std::vector<at::Tensor> direct;
  ASSERT_TRUE(vae.Decode(latents,
                         [&](const at::Tensor& frames) {
                           direct.push_back(frames);
                           return absl::OkStatus();
                         },
                         {})
                  .ok());
  EXPECT_TRUE(at::equal(Decode(vae, latents, {}), at::cat(direct, 1)));
}

TEST(TiledDecodeTest, TilesAreAsLargeAsTheEstimateThinks) {
  for (const TileGrid& grid : TileGrids({3, 44, 80})) {
    const NearsightedVae vae;
    Decode(vae, SomeLatents(44, 80), grid);
    const LatentSize tile = TileOf({3, 44, 80}, grid);
    EXPECT_EQ(vae.largest_tile_, tile.height * tile.width);
    EXPECT_EQ(vae.decodings_, grid.rows * grid.columns);
  }
}

TEST(TiledDecodeTest, TheSinksErrorAndAStopEndIt) {
  const NearsightedVae vae;
  const at::Tensor latents = SomeLatents(40, 40);
  const auto refuse = [](const at::Tensor&) { return absl::DataLossError("full"); };
  EXPECT_EQ(DecodeTiled(vae, latents, {2, 2}, refuse, {}).code(), absl::StatusCode::kDataLoss);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(DecodeTiled(vae, latents, {2, 2}, refuse, stop.get_token()).code(),
            absl::StatusCode::kCancelled);
}

TEST(CutIntoTilesTest, CoversTheWholeAndOverlaps) {
  for (int64_t whole = 16; whole < 200; whole += 7) {
    for (int count = 1; count < 6; ++count) {
      if (TileOf({1, whole, 1}, {count, 1}).height < kSmallestTile) continue;
      const std::vector<TileSpan> tiles = CutIntoTiles(whole, count);
      ASSERT_EQ(tiles.size(), static_cast<size_t>(count));
      EXPECT_EQ(tiles.front().begin, 0);
      EXPECT_EQ(tiles.back().begin + tiles.back().size, whole);
      for (size_t i = 1; i < tiles.size(); ++i) {
        const int64_t shared = tiles[i - 1].begin + tiles[i - 1].size - tiles[i].begin;
        EXPECT_GE(shared, kTileOverlap) << whole << " in " << count;
        // No more than two tiles share a latent.
        if (i >= 2) {
          EXPECT_LE(tiles[i - 2].begin + tiles[i - 2].size, tiles[i].begin);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wan
