// Reports which kernels a loaded model uses for attention.
#pragma once

#include "engine/api/recorder.h"
#include "engine/runtime/model_loading.h"

namespace wan {

// Returns the sample "attention_kernels", which describes a video of the model's default size. The
// labels "self" and "cross" name the kernels (NameOf(AttentionKernel)) of the self-attention and of
// the attention to the text. Videos of other sizes may use other kernels, because the choice also
// depends on the number of tokens.
Sample AttentionKernels(const LoadedModel& model, const LoadOptions& options);

}  // namespace wan
