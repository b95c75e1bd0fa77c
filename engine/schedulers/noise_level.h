// Quantities of a noise level for multistep solvers.
#pragma once

namespace wan {

// Functions of an fp32 number computed as in LibTorch, which differs from the C library in the last
// bit. A step's factors are small differences of logarithms: with these functions a trajectory
// equals the reference's exactly, with the C library's only within 1e-6.
float TorchLog(float x);
float TorchExp(float x);
float TorchExpm1(float x);  // e^x - 1

// A noise level: x = alpha * clean + sigma * noise with alpha = 1 - sigma. Computed in fp32, like
// the reference, because the rounding affects the trajectory.
struct NoiseLevel {
  float alpha;
  float sigma;
  // Half the logarithm of the signal-to-noise ratio: minus infinity at sigma 1, plus infinity at 0.
  float lambda;

  explicit NoiseLevel(float sigma)
      : alpha(1 - sigma), sigma(sigma), lambda(TorchLog(1 - sigma) - TorchLog(sigma)) {}
};

}  // namespace wan
