// The quantities of a noise level that multistep solvers use.
#pragma once

namespace wan {

// Functions of an fp32 number, computed as LibTorch does; the C library's results differ in the
// last bit. A step's factors are small differences of logarithms. With these functions a trajectory
// equals the reference's exactly; with the C library's functions only to 1e-6.
float TorchLog(float x);
float TorchExp(float x);
float TorchExpm1(float x);  // e^x - 1

// A noise level, at which x = alpha * clean + sigma * noise, with alpha = 1 - sigma. The members
// are computed in fp32, as in the reference, because their rounding affects the trajectory.
struct NoiseLevel {
  float alpha;
  float sigma;
  // Half of the logarithm of the signal-to-noise ratio: minus infinity at sigma 1, plus infinity at
  // sigma 0.
  float lambda;

  explicit NoiseLevel(float sigma)
      : alpha(1 - sigma), sigma(sigma), lambda(TorchLog(1 - sigma) - TorchLog(sigma)) {}
};

}  // namespace wan
