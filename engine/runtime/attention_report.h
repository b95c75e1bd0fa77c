// Reports the kernels with which a loaded model computes attention.
#pragma once

#include "engine/api/recorder.h"
#include "engine/runtime/model_loading.h"

namespace wan {

// Returns the sample "attention_kernels", whose labels "self" and "cross" name the kernels
// (NameOf(AttentionKernel)) of the transformers' two attentions in a video of the model's default
// size. A video of another size may have others: they are chosen by its number of tokens as well.
Sample AttentionKernels(const LoadedModel& model, const LoadOptions& options);

}  // namespace wan
