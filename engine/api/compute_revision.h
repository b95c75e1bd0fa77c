// The number of the engine's own numerics.
#pragma once

namespace wan {

// Builds with the same number compute the same bits from the same request, weights, libraries and
// kind of device. A savepoint is continued only by a build with its number, and receipts name it.
//
// Add one in every commit that changes a bit of any latents or frames: another order of operations,
// another kernel, tile or rounding, another schedule, another use of the seed. It does not matter
// how small the change is, or on which device, dtype or quality it shows. Do not change the number
// for anything else, because waiting jobs then lose the steps that they have kept.
// compute_revision_test fails if the bits of its jobs, which run on one CPU without tiles, change
// while the number stays; nothing notices it for a GPU but scripts/gpu/latent_digests.
inline constexpr int kComputeRevision = 1;

}  // namespace wan
