// How cuBLAS adds up the products of a matrix multiplication.
#pragma once

namespace wan {

// Makes matrix products of the process exact in fp32, and lets those in bf16 and fp16 round only
// their inputs and their result: LibTorch's default lets cuBLAS also round the sums of the parts
// that it divides a long product into (split-K). Call it once the CUDA plug-in is loaded and before
// the first product. Thread-compatible.
void AddProductsInFp32();

}  // namespace wan
