// The quantities of one noise level in which multistep solvers are written.
#pragma once

namespace wan {

// Functions of one fp32 number as LibTorch computes them, which is not to the last bit what the C
// library gives. A step's factors come from small differences of logarithms, so with these a
// trajectory equals the reference's exactly, and with the C library's within 1e-6.
float TorchLog(float x);
float TorchExp(float x);
float TorchExpm1(float x);  // e^x - 1

// x = alpha * clean + sigma * noise, alpha = 1 - sigma. In fp32, like the reference: its rounding
// is part of the trajectory.
struct NoiseLevel {
  float alpha;
  float sigma;
  // Half the logarithm of the signal-to-noise ratio: minus infinity at sigma 1, plus infinity at 0.
  float lambda;

  explicit NoiseLevel(float sigma)
      : alpha(1 - sigma), sigma(sigma), lambda(TorchLog(1 - sigma) - TorchLog(sigma)) {}
};

}  // namespace wan
