// Changes LibTorch's process-wide settings that this engine does not leave at their defaults.
#pragma once

namespace wan {

// Call it once the CUDA plug-in is loaded, before the first product and the first attention; on a
// CPU it changes nothing. Thread-compatible. It sets two things:
//
// Matrix products are exact in fp32, and those in bf16 and fp16 round only their inputs and their
// result: the default lets cuBLAS also round the sums of the parts into which it divides a long
// product (split-K).
//
// Where this engine names no attention kernel, LibTorch must not choose cuDNN's, which makes a plan
// for each length, so that the first text of each length would wait. Attention
// (engine/ops/attention.h) names its kernels and is not affected.
void ReplaceLibraryDefaults();

}  // namespace wan
