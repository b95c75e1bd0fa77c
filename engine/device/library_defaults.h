// Changes those settings of LibTorch, valid for the whole process, that do not suit this engine.
#pragma once

namespace wan {

// Call ReplaceLibraryDefaults after the CUDA plug-in is loaded and before the first product and
// attention. On a CPU it changes nothing. Only one thread at a time may call the function. The
// function changes two settings:
//
// Matrix products in fp32 are exact: they do not use TF32. Products in bf16 and fp16 round only
// their inputs and their result. By default, cuBLAS may also round partial sums of a long product
// (split-K).
//
// LibTorch must not choose cuDNN's attention where this engine names no kernel: cuDNN makes a plan
// for each length, so the first text of every length would wait for a plan. Attention in
// engine/ops/attention.h names its kernel, so this setting does not affect it.
void ReplaceLibraryDefaults();

}  // namespace wan
