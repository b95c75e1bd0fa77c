// The quantities of one noise level in which multistep solvers are written.
#pragma once

#include <cmath>

namespace wan {

// x = alpha * clean + sigma * noise, alpha = 1 - sigma. All in fp32, like the reference: its
// rounding is part of the trajectory.
struct NoiseLevel {
  float alpha;
  float sigma;
  // Half the logarithm of the signal-to-noise ratio: minus infinity at sigma 1, plus infinity at 0.
  float lambda;

  explicit NoiseLevel(float sigma)
      : alpha(1 - sigma), sigma(sigma), lambda(std::log(1 - sigma) - std::log(sigma)) {}
};

}  // namespace wan
