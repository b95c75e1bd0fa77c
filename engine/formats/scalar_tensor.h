// Reads tensors that hold one number.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Returns the only element of a tensor of `file`; nullopt if the tensor has several elements or a
// dtype of 8 bits, or if the value is not finite. Returns the errors of MappedFile::Copy.
absl::StatusOr<std::optional<double>> ReadScalar(const MappedFile& file,
                                                 const StoredTensor& tensor);

}  // namespace wan
