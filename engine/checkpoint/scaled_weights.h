// Converts the 8-bit codes in which a checkpoint may keep matrices to values. The scales are
// separate tensors, and each program that writes 8-bit codes names the scales differently;
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

// The tensors of a component that no code has used yet, by name. Code that uses a tensor removes it
// from the map.
using StoredTensors = std::map<std::string_view, Located>;

// Removes and returns the stored tensor with the values or codes of `name`; an empty Located if
// `stored` has none. For a matrix of codes, also removes its tensors that the engine does not need.
Located TakeValues(StoredTensors& stored, std::string_view name);

// Removes tensors that are no weights: the mark that matrices are scaled, and the text encoder's
// tokenizer. Returns by what 8-bit floats must have scales, to follow "although": such a mark, or
// another matrix that has them. Empty if they need none. Call it before all other functions.
std::string_view TakeMarks(StoredTensors& stored);

// Returns the decoder of `values`, which TakeValues returned for `name`; null if the values are a
// plain array. Removes the tensor with the scales from `stored`. `scaled` is the result of
// TakeMarks. DATA_LOSS or UNIMPLEMENTED, naming file and tensor, if the scales are missing, do not
// fit or are not finite.
absl::StatusOr<std::shared_ptr<const TensorDecoder>> TakeDecoder(StoredTensors& stored,
                                                                 std::string_view name,
                                                                 const Located& values,
                                                                 std::string_view scaled);

}  // namespace wan
