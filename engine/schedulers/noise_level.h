// The quantities of one noise level that multistep solvers use.
#pragma once

namespace wan {

// These compute a function of one fp32 number as LibTorch does, which differs from the C library in
// the last bit. The factors of a step come from small differences of logarithms: with these
// functions a trajectory equals the reference's exactly, with the C library's only within 1e-6.
float TorchLog(float x);
float TorchExp(float x);
float TorchExpm1(float x);  // e^x - 1

// A noise level: x = alpha * clean + sigma * noise with alpha = 1 - sigma. It is computed in fp32,
// like the reference, because the rounding is part of the trajectory.
struct NoiseLevel {
  float alpha;
  float sigma;
  // Half the logarithm of the signal-to-noise ratio: minus infinity at sigma 1, plus infinity at 0.
  float lambda;

  explicit NoiseLevel(float sigma)
      : alpha(1 - sigma), sigma(sigma), lambda(TorchLog(1 - sigma) - TorchLog(sigma)) {}
};

}  // namespace wan
