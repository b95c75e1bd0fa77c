// Converts the 8-bit codes in which a checkpoint may keep matrices to values. The scales are
// tensors of their own, and each program that writes such files has its own names for them;
// docs/operate/checkpoints.md lists the forms.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_decoder.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// A tensor and the file that has it.
struct Located {
  const TensorFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
};

// The tensors of a component that are still unused, by their names. The code that uses a tensor
// removes it.
using StoredTensors = std::map<std::string_view, Located>;

// Removes the tensor with the values, or the codes, of the tensor `name`; returns an empty Located
// if there is none. If it is a matrix of codes, unneeded tensors that belong to it are removed as
// well.
Located TakeValues(StoredTensors& stored, std::string_view name);

// Removes the tensors that are only marks (matrices are scaled; the tokenizer of the text encoder).
// Returns by what 8-bit floats must have scales, to follow "although": such a mark, or another
// matrix that has them. Empty if they need none. Call it before all other functions.
std::string_view TakeMarks(StoredTensors& stored);

// Returns the decoder of `values`, which are those of the tensor `name`; null if they are a plain
// array. Removes the tensor with the scales. `scaled` is what TakeMarks has returned. DATA_LOSS or
// UNIMPLEMENTED, naming file and tensor, if the scales are missing, do not fit or are not finite.
absl::StatusOr<std::shared_ptr<const TensorDecoder>> TakeDecoder(StoredTensors& stored,
                                                                 std::string_view name,
                                                                 const Located& values,
                                                                 std::string_view scaled);

}  // namespace wan
