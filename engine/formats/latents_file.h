// Finds latents in the safetensors files that callers send with their requests. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Returns the tensor `latents` of `file`, or its only tensor, without a leading dimension of 1 (a
// batch of one). `file` is the whole content of the file and must outlive the result. Reads every
// value once, which takes about 0.1 s per gigabyte. INVALID_ARGUMENT if the file is not a
// safetensors file, has neither a tensor `latents` nor exactly one tensor, has values of a type
// other than F32, F16 and BF16, or has a value that is NaN or infinite. The message follows the
// name of the request's field. Does not check the shape.
absl::StatusOr<StoredTensor> FindLatents(std::string_view file);

// Does the same as FindLatents, but reads the values of `file` only once while `file` lives, even
// if several device groups plan its request.
absl::StatusOr<StoredTensor> FindLatentsOnce(const std::shared_ptr<const std::string>& file);

}  // namespace wan
