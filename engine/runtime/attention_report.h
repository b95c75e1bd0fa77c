// Reports which kernels a loaded model uses for attention.
#pragma once

#include "engine/api/recorder.h"
#include "engine/runtime/model_loading.h"

namespace wan {

// Returns the sample "attention_kernels" for a video of the model's default size. Its labels "self"
// and "cross" name the kernels (NameOf(AttentionKernel)) of the two attentions. Other sizes may use
// other kernels, because the choice also depends on the number of tokens.
Sample AttentionKernels(const LoadedModel& model, const LoadOptions& options);

}  // namespace wan
