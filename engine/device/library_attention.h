// Which of LibTorch's attentions it chooses by itself, where this engine does not name one.
#pragma once

namespace wan {

// Keeps LibTorch from choosing cuDNN's attention on CUDA. cuDNN makes a plan for each length, which
// a text's first encoding would wait for, and every text may have a length of its own. Attention
// (engine/ops/attention.h) names its kernels itself and is not affected. Call it once the CUDA
// plug-in is loaded and before the first attention. Thread-compatible.
void ChooseAttentionWithoutPlans();

}  // namespace wan
