// Changes those process-wide settings of LibTorch that do not suit this engine.
#pragma once

namespace wan {

// Call it after the CUDA plug-in is loaded and before the first product and attention; on a CPU it
// changes nothing. Thread-compatible. It sets two things:
//
// Matrix products are exact in fp32, and in bf16 and fp16 round only inputs and result. By default
// cuBLAS may also round partial sums of a long product (split-K).
//
// Where this engine names no attention kernel, LibTorch must not use cuDNN's: it makes a plan per
// length, so the first text of each length would wait. Attention (engine/ops/attention.h) names its
// kernel and is not affected.
void ReplaceLibraryDefaults();

}  // namespace wan
