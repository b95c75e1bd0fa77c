// What a pass of the autoencoder has to compute, from its dimensions alone.
#pragma once

#include "benchmarks/bench_shape.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Floating-point operations of decoding, or of encoding, a whole video: every convolution as its
// definition has it, and the attention in the middle, which counts among the products because no
// ceiling of long attention holds for it.
double VaeDecodeFlop(const VaeConfig& config, const BenchShape& shape);
double VaeEncodeFlop(const VaeConfig& config, const BenchShape& shape);

}  // namespace wan
