// The small Wan2.2 autoencoder of tests/golden, read without the product's checkpoint code.
#pragma once

#include "engine/checkpoint/model_config.h"
#include "tests/engine/in_memory_weights.h"

namespace wan {

VaeConfig GoldenVae22Config();
InMemoryWeights GoldenVae22Weights();

}  // namespace wan
